package mds

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/source"
)

// Samples is the samples of a folder, in the order of its index. It is a loader.Fingerprinter
// and a loader.Locator, and Dataset makes a loader.Dataset of it. Its methods may be called
// by several goroutines at once.
type Samples struct {
	folder  *folder
	files   []source.File
	offsets [][]uint32 // of each file
	ends    ends.Ends
	scratch sync.Pool // *Sample
}

// Open reads the index of a folder and, of each shard, where its samples are. All shards must be
// there and plain: NewStream reads compressed ones. The Samples own the open files, of which a few
// hundred are open at once: close them behind the loaders that read them.
//
// The error is a *source.Error for a file that can't be read, a *source.FormatError for an index
// or a shard that is none, or has another size or number of samples than the index says, and a
// *loader.OptionError for each mistake in the options.
func Open(ctx context.Context, path string, o Options) (*Samples, error) {
	return open(ctx, inFolder(path), o)
}

// OpenFS is Open for the root of an fs.FS.
func OpenFS(ctx context.Context, fsys fs.FS, o Options) (*Samples, error) {
	return open(ctx, inFS(fsys), o)
}

func inFolder(path string) func(string) source.Source {
	return func(name string) source.Source { return source.Path(filepath.Join(path, filepath.FromSlash(name))) }
}

func inFS(fsys fs.FS) func(string) source.Source {
	return func(name string) source.Source { return source.FS(fsys, name) }
}

func open(ctx context.Context, file func(name string) source.Source, o Options) (*Samples, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	d, err := readIndex(ctx, file)
	if err != nil {
		return nil, err
	}
	s := &Samples{folder: d}
	s.scratch.New = func() any { return new(Sample) }
	pool := source.NewPool(0)
	for i := range d.shards {
		if err := s.open(ctx, pool, &d.shards[i], o); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Samples) open(ctx context.Context, pool *source.Pool, info *shardInfo, o Options) error {
	if there, err := s.folder.exists(ctx, info); err != nil {
		return err
	} else if !there {
		return &source.FormatError{
			Format: "mds", File: s.folder.file(info.Zip.Name).Name(), Offset: -1, Record: -1,
			Want: "the plain shard " + info.Raw.Name + ", since samples of compressed ones are read in order, by NewStream", Got: "the compressed one alone",
		}
	}
	from := s.folder.file(info.Raw.Name)
	if o.Mapped {
		from = source.Mapped(from)
	}
	f, err := pool.Source(from).Open(ctx)
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	if f.Size() != info.Raw.Bytes {
		return &source.FormatError{Format: "mds", File: f.Name(), Offset: -1, Record: -1, Want: fmt.Sprintf("%d bytes, as the index has", info.Raw.Bytes), Got: fmt.Sprint(f.Size())}
	}
	at := int64(0)
	offsets, err := info.offsets(f.Name(), func(p []byte) error {
		at += int64(len(p))
		return source.ReadFull(ctx, f, p, at-int64(len(p)))
	})
	if err != nil {
		return err
	}
	for i := range offsets[1:] {
		if n := int64(offsets[i+1] - offsets[i]); n > o.MaxBytes {
			return tooLarge(f.Name(), int64(offsets[i]), int64(i), n, o)
		}
	}
	s.offsets = append(s.offsets, offsets)
	if !s.ends.Add(info.Samples) {
		return &loader.OptionError{Package: "mds", Option: "samples", Value: "too many", Want: "as many as an int counts"}
	}
	return nil
}

func tooLarge(file string, offset, record, n int64, o Options) error {
	return &source.FormatError{
		Format: "mds", File: file, Offset: offset, Record: record,
		Want: fmt.Sprintf("a sample of at most %d bytes (Options.MaxBytes)", o.MaxBytes), Got: fmt.Sprint(n),
	}
}

// Len is the number of samples.
func (s *Samples) Len() int { return s.ends.Len() }

// Columns are those of each sample. They are borrowed.
func (s *Samples) Columns() []Column { return s.folder.columns }

// Fingerprint tells the samples from others by the names, sizes and checksums of the shards in the
// index.
func (s *Samples) Fingerprint() uint64 { return s.folder.sum }

// Origin is where a sample lies.
func (s *Samples) Origin(index int) loader.Origin {
	file, at := s.ends.Locate(index)
	return loader.Origin{File: s.files[file].Name(), Offset: int64(s.offsets[file][at]), Record: int64(at)}
}

// Read reads a sample into new memory, which is the caller's.
func (s *Samples) Read(ctx context.Context, index int) (*Sample, error) {
	to := new(Sample)
	if err := s.read(ctx, index, to); err != nil {
		return nil, err
	}
	return to, nil
}

func (s *Samples) read(ctx context.Context, index int, to *Sample) error {
	file, at := s.ends.Locate(index)
	to.Origin, to.columns = s.Origin(index), s.folder.columns
	from := s.offsets[file][at]
	n := int(s.offsets[file][at+1] - from)
	to.bytes = slices.Grow(to.bytes[:0], n)[:n]
	if err := source.ReadFull(ctx, s.files[file], to.bytes, int64(from)); err != nil {
		return err
	}
	return to.cut()
}

// Dataset is the samples as a loader.Dataset of the fields: encode writes a sample to a row, under
// the rules of loader.Dataset.Read. The sample is borrowed until encode returns. If encode is nil
// each field is the column of its name, as Sample.Write writes it.
func (s *Samples) Dataset(fields []loader.Field, encode func(ctx context.Context, s *Sample, row *loader.Row) error) loader.Dataset {
	if encode == nil {
		encode = byName(fields)
	}
	return &dataset{Samples: s, fields: fields, encode: encode}
}

// byName writes columns to the fields of their names.
func byName(fields []loader.Field) func(context.Context, *Sample, *loader.Row) error {
	return func(_ context.Context, s *Sample, row *loader.Row) error {
		for i := range fields {
			if err := s.Write(row, fields[i].Name); err != nil {
				return err
			}
		}
		return nil
	}
}

type dataset struct {
	*Samples
	fields []loader.Field
	encode func(ctx context.Context, s *Sample, row *loader.Row) error
}

// Fields implements loader.Dataset.
func (d *dataset) Fields() []loader.Field { return d.fields }

// Read implements loader.Dataset.
func (d *dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	s := d.scratch.Get().(*Sample)
	defer d.scratch.Put(s)
	if err := d.read(ctx, index, s); err != nil {
		return err
	}
	return d.encode(ctx, s, row)
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (s *Samples) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
