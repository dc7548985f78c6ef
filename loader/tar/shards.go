package tar

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/source"
)

// Shards is the samples of some tar files, in the order of the files. It is a
// loader.Fingerprinter and a loader.Locator, and Dataset makes a loader.Dataset of it. Its methods
// may be called by several goroutines at once.
type Shards struct {
	files   []source.File
	ends    ends.Ends
	index   index
	sum     uint64
	scratch sync.Pool // *Sample, with memory in it
}

// Open reads the headers of plain tar files: a block for each file in them, and nothing in
// between. The Shards own the open files: close them behind the loaders that read them.
//
// The error is a *source.Error for a file that can't be read, a *source.FormatError for one that is
// no whole tar file, is compressed, has a part of a sample twice or a sample that is too
// large, and a *loader.OptionError for each mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Shards, error) {
	o, err := o.filled()
	if err = errors.Join(err, given.Files("tar", files)); err != nil {
		return nil, err
	}
	s := &Shards{}
	s.scratch.New = func() any { return new(memory) }
	for _, f := range files {
		if err := s.open(ctx, f, o); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if s.sum, err = source.Fingerprint(ctx, files); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Shards) open(ctx context.Context, from source.Source, o Options) error {
	if o.Mapped {
		from = source.Mapped(from)
	}
	f, err := from.Open(ctx)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	if err := s.index.scan(ctx, f, o); err != nil {
		return err
	}
	s.ends = append(s.ends, len(s.index.keys))
	return nil
}

// Len is the number of samples.
func (s *Shards) Len() int { return len(s.index.keys) }

// Fingerprint tells the files from others by their names and sizes: see source.Fingerprint.
func (s *Shards) Fingerprint() uint64 { return s.sum }

// Suffixes are those of all samples, in the order in which they turned up first. They are
// borrowed.
func (s *Shards) Suffixes() []string { return s.index.suffixes }

// Origin is where a sample lies: the offset of its first part's header.
func (s *Shards) Origin(index int) loader.Origin {
	file, at := s.ends.Locate(index)
	return loader.Origin{File: s.files[file].Name(), Offset: s.index.of(index)[0].begin(), Record: int64(at)}
}

// memory is a sample with the bytes of its parts.
type memory struct {
	sample Sample
	bytes  []byte
}

// Read reads a sample. Its parts are new memory, which is the caller's.
func (s *Shards) Read(ctx context.Context, index int) (*Sample, error) {
	m := new(memory)
	if err := s.read(ctx, index, m); err != nil {
		return nil, err
	}
	return &m.sample, nil
}

// read reads all parts at once, with what lies between.
func (s *Shards) read(ctx context.Context, index int, m *memory) error {
	file, at := s.ends.Locate(index)
	parts := s.index.of(index)
	first, last := &parts[0], &parts[len(parts)-1]
	n := last.data + last.size - first.data
	m.bytes = slices.Grow(m.bytes[:0], int(n))[:n]
	f := s.files[file]
	if err := source.ReadFull(ctx, f, m.bytes, first.data); err != nil {
		return err
	}
	m.sample.Key = s.index.keys[index]
	m.sample.Origin = loader.Origin{File: f.Name(), Offset: first.begin(), Record: int64(at)}
	m.sample.Parts = m.sample.Parts[:0]
	for i := range parts {
		p := &parts[i]
		begin := p.data - first.data
		m.sample.Parts = append(m.sample.Parts, Part{Suffix: s.index.suffixes[p.suffix], Data: m.bytes[begin : begin+p.size : begin+p.size]})
	}
	return nil
}

// Dataset is the samples as a loader.Dataset of the fields: encode writes a sample to a row,
// under the rules of loader.Dataset.Read. The sample is borrowed until encode returns.
func (s *Shards) Dataset(fields []loader.Field, encode func(ctx context.Context, s *Sample, row *loader.Row) error) loader.Dataset {
	return &dataset{Shards: s, fields: fields, encode: encode}
}

type dataset struct {
	*Shards
	fields []loader.Field
	encode func(ctx context.Context, s *Sample, row *loader.Row) error
}

// Fields implements loader.Dataset.
func (d *dataset) Fields() []loader.Field { return d.fields }

// Read implements loader.Dataset.
func (d *dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	m := d.scratch.Get().(*memory)
	defer d.scratch.Put(m)
	if err := d.read(ctx, index, m); err != nil {
		return err
	}
	return d.encode(ctx, &m.sample, row)
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (s *Shards) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
