package records

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Options tunes Open. The zero value is ready to use.
type Options struct {
	// Header is how many bytes stand in front of a file's first record.
	Header int64
	// Stride is how many bytes there are from the beginning of a record to that of the next.
	// 0 means that they lie one behind the other. What is left between them is not read.
	Stride int64
	// Mapped maps the files that are paths into memory, which pays for small records of files
	// that lie in the system's memory already: see source.Mapped.
	Mapped bool
}

// SizeError is a file whose size is not that of its header and of whole records.
type SizeError struct {
	// File is its name, Size its size in bytes.
	File string
	Size int64
	// Header and Stride are those of Options, Stride with its default.
	Header, Stride int64
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("records: %s has %d bytes, want a header of %d and records of %d each", e.File, e.Size, e.Header, e.Stride)
}

// Dataset is the records of some files, in the order of the files. It is a loader.Dataset,
// a loader.Fingerprinter and a loader.Locator. Its methods may be called by several
// goroutines at once.
type Dataset struct {
	fields  []loader.Field
	bytes   []int64 // of each field in a record
	record  int64   // all of them
	options Options
	files   []source.File
	ends    []int // how many records there are up to the end of each file
	sum     uint64
	whole   sync.Pool // of memory for a record, *[]byte
}

// Open opens the files and looks at their sizes. The fields are those of a record, in their
// order; none may be ragged. The Dataset owns the open files: close it behind the loaders
// that read it.
//
// The error is a *source.Error for a file that can't be opened, a *SizeError for one of
// another size, and a *loader.OptionError for each mistake in fields and options, joined.
func Open(ctx context.Context, files []source.Source, fields []loader.Field, o Options) (*Dataset, error) {
	d, err := newDataset(files, fields, o)
	if err != nil {
		return nil, err
	}
	for _, s := range files {
		if err := d.open(ctx, s); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	sum, err := source.Fingerprint(ctx, files)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.sum = mix.Hash(sum, uint64(d.options.Header), uint64(d.options.Stride))
	return d, nil
}

// newDataset is a Dataset without files.
func newDataset(files []source.Source, fields []loader.Field, o Options) (*Dataset, error) {
	layout, err := loader.NewLayout(fields, 1)
	if err != nil {
		return nil, err
	}
	d := &Dataset{options: o}
	var wrong []error
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			wrong = append(wrong, &loader.OptionError{Package: "records", Option: option, Value: value, Want: want})
		}
	}
	for i, f := range layout.Written() {
		check(f.Ragged == nil, fmt.Sprintf("fields[%d] (%s)", i, f.Name), "ragged", "a field of one length")
		d.fields, d.bytes = append(d.fields, f.Field), append(d.bytes, f.RowBytes)
		d.record += f.RowBytes
	}
	if o.Stride == 0 {
		d.options.Stride = d.record
	}
	check(d.record > 0, "fields", "all of them empty", "a record of one byte or more")
	check(o.Header >= 0, "Header", o.Header, "0 (none) or more")
	check(o.Stride == 0 || o.Stride >= d.record, "Stride", o.Stride, fmt.Sprintf("0 (one behind the other) or at least a record's %d bytes", d.record))
	if err := errors.Join(append(wrong, given.Files("records", files))...); err != nil {
		return nil, err
	}
	d.whole.New = func() any { b := make([]byte, d.record); return &b }
	return d, nil
}

// open adds a file.
func (d *Dataset) open(ctx context.Context, s source.Source) error {
	if d.options.Mapped {
		s = source.Mapped(s)
	}
	f, err := s.Open(ctx)
	if err != nil {
		return err
	}
	d.files = append(d.files, f)
	data := f.Size() - d.options.Header
	if data < 0 || data%d.options.Stride != 0 {
		return &SizeError{File: f.Name(), Size: f.Size(), Header: d.options.Header, Stride: d.options.Stride}
	}
	n := data / d.options.Stride
	if n > int64(math.MaxInt-d.Len()) {
		return &loader.OptionError{Package: "records", Option: "files", Value: "too many records", Want: fmt.Sprintf("at most %d", math.MaxInt)}
	}
	d.ends = append(d.ends, d.Len()+int(n))
	return nil
}

// Len is the number of records in all files.
func (d *Dataset) Len() int {
	if len(d.ends) == 0 {
		return 0
	}
	return d.ends[len(d.ends)-1]
}

// Fields are those of a record.
func (d *Dataset) Fields() []loader.Field { return d.fields }

// Fingerprint tells the files from others by their names and sizes, and by where the
// records lie in them: see source.Fingerprint.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Origin is the file of a record, its offset and its number there.
func (d *Dataset) Origin(index int) loader.Origin {
	f, at := d.locate(index)
	return loader.Origin{File: f.Name(), Offset: at, Record: (at - d.options.Header) / d.options.Stride}
}

// locate is where a record lies.
func (d *Dataset) locate(index int) (f source.File, offset int64) {
	file, _ := slices.BinarySearch(d.ends, index+1) // the first that ends behind it
	if file > 0 {
		index -= d.ends[file-1]
	}
	return d.files[file], d.options.Header + int64(index)*d.options.Stride
}

// direct is how many bytes are better read where they belong, a field at a time, than all
// at once to be copied: about as many as can be copied in the time of a call of the system.
const direct = 16 << 10

// Read reads a record. The error is a *source.Error with the file and the offset.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	f, at := d.locate(index)
	if len(d.fields) > 1 && d.record <= direct {
		whole := d.whole.Get().(*[]byte)
		defer d.whole.Put(whole)
		if err := source.ReadFull(ctx, f, *whole, at); err != nil {
			return err
		}
		for i, from := 0, *whole; i < len(d.fields); i++ {
			copy(row.Bytes(d.fields[i].Name), from)
			from = from[d.bytes[i]:]
		}
		return nil
	}
	for i := range d.fields {
		if err := source.ReadFull(ctx, f, row.Bytes(d.fields[i].Name), at); err != nil {
			return err
		}
		at += d.bytes[i]
	}
	return nil
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed.
func (d *Dataset) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
