package tfrecord

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/unpack"
	"github.com/leat-go/leat/loader/source"
)

// Records is the records of some files, in the order of the files. It is a loader.Fingerprinter and
// a loader.Locator; Dataset and Examples make a loader.Dataset of it. Its methods may be called
// by several goroutines at once.
type Records struct {
	options Options
	files   []source.File
	ends    ends.Ends
	offsets []int64 // of each record in its file
	sum     uint64
	scratch sync.Pool // *memory
}

// memory is for a record under way.
type memory struct {
	bytes   []byte
	example Example
}

// Open looks where the records of plain files are: it reads and checks the length of each, and not
// its bytes. The Records own the open files: close them behind the loaders that read them.
//
// The error is a *source.Error for a file that can't be read, a *source.FormatError for one that
// is compressed, is cut off, or has a wrong length or a record that is too large, and a
// *loader.OptionError for each mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Records, error) {
	o, err := o.filled()
	if err = errors.Join(err, given.Files("tfrecord", files)); err != nil {
		return nil, err
	}
	r := &Records{options: o}
	r.scratch.New = func() any { return new(memory) }
	for _, f := range files {
		if err := r.open(ctx, f); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if r.sum, err = source.Fingerprint(ctx, files); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Records) open(ctx context.Context, from source.Source) error {
	if r.options.Mapped {
		from = source.Mapped(from)
	}
	f, err := from.Open(ctx)
	if err != nil {
		return err
	}
	r.files = append(r.files, f)
	in, err := open(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	s := scanner{in: in, options: r.options}
	if in.Kind() != unpack.Plain {
		return s.place().failure("a plain file, since records of compressed ones are read in order, by NewStream", "one compressed by "+string(in.Kind()))
	}
	for {
		n, err := s.head(ctx)
		if err == io.EOF {
			r.ends = append(r.ends, len(r.offsets))
			return nil
		}
		if err == nil {
			r.offsets = append(r.offsets, s.offset)
			err = s.skip(ctx, n)
		}
		if err != nil {
			return err
		}
	}
}

// Len is the number of records.
func (r *Records) Len() int { return len(r.offsets) }

// Fingerprint tells the files from others by their names and sizes: see source.Fingerprint.
func (r *Records) Fingerprint() uint64 { return r.sum }

// Origin is where a record begins.
func (r *Records) Origin(index int) loader.Origin {
	file, at := r.ends.Locate(index)
	return loader.Origin{File: r.files[file].Name(), Offset: r.offsets[index], Record: int64(at)}
}

// Append reads a record, checks it, and appends it to dst. The error is a *source.Error or a
// *source.FormatError.
func (r *Records) Append(ctx context.Context, dst []byte, index int) ([]byte, error) {
	file, at := r.ends.Locate(index)
	f, offset := r.files[file], r.offsets[index]
	p := place{file: f.Name(), offset: offset, record: int64(at)}
	end := f.Size()
	if index+1 < r.ends[file] {
		end = r.offsets[index+1]
	}
	begin := len(dst)
	dst = slices.Grow(dst, int(end-offset))[:begin+int(end-offset)]
	if err := source.ReadFull(ctx, f, dst[begin:], offset); err != nil {
		return dst[:begin], err
	}
	n, err := p.length(dst[begin:], r.options)
	if err == nil && n != end-offset-frame {
		err = p.failure("the length that it had when the file was opened", "another")
	}
	if err != nil {
		return dst[:begin], err
	}
	data, err := p.check(dst[begin+head:])
	if err != nil {
		return dst[:begin], err
	}
	copy(dst[begin:], data)
	return dst[:begin+len(data)], nil
}

// read reads a record to memory of m.
func (r *Records) read(ctx context.Context, index int, m *memory) (err error) {
	m.bytes, err = r.Append(ctx, m.bytes[:0], index)
	return err
}

// Dataset is the records as a loader.Dataset of the fields: encode writes a record to a row,
// under the rules of loader.Dataset.Read. The record is borrowed until encode returns.
func (r *Records) Dataset(fields []loader.Field, encode func(ctx context.Context, record []byte, row *loader.Row) error) loader.Dataset {
	return &dataset{Records: r, fields: fields, encode: func(ctx context.Context, m *memory, row *loader.Row) error {
		return encode(ctx, m.bytes, row)
	}}
}

// Examples is the records as a loader.Dataset of Examples. Each field is the feature of its name,
// as Example.Write writes it.
func (r *Records) Examples(fields []loader.Field) loader.Dataset {
	return &dataset{Records: r, fields: fields, encode: func(_ context.Context, m *memory, row *loader.Row) error {
		if err := m.example.Parse(m.bytes); err != nil {
			return err
		}
		for i := range fields {
			if err := m.example.Write(row, fields[i].Name); err != nil {
				return err
			}
		}
		return nil
	}}
}

type dataset struct {
	*Records
	fields []loader.Field
	encode func(ctx context.Context, m *memory, row *loader.Row) error
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
	err := d.encode(ctx, m, row)
	if format, ok := err.(*source.FormatError); ok && format.File == "" {
		o := d.Origin(index)
		format.File, format.Offset, format.Record = o.File, o.Offset, o.Record
	}
	return err
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (r *Records) Close() error {
	var errs []error
	for _, f := range r.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
