package lines

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Dataset is the records of some files, in the order of the files. It is a loader.Dataset, a
// loader.Fingerprinter and a loader.Locator. Its methods may be called by several goroutines at
// once.
type Dataset struct {
	fields  []loader.Field
	encode  func(ctx context.Context, text []byte, row *loader.Row) error
	files   []source.File
	indexes []*index
	reports []Index
	ends    ends.Ends
	sum     uint64
	scratch loader.Local[scratch]
}

// scratch is memory for a record.
type scratch struct {
	entry [entryBytes]byte
	text  []byte
}

// Open opens files, and makes the indexes that are not there. encode writes a record to a row
// of the fields, under the rules of loader.Dataset.Read; text is borrowed until it returns. A
// *source.FormatError of encode that has no File is given the record's place, and its Offset is
// one in the text, or -1. The Dataset owns the open files: close it behind the loaders that
// read it.
//
// The error is a *source.Error for a file that can't be opened or read, a *source.FormatError
// for one that can't be split, and a *loader.OptionError for each mistake in the options,
// joined.
func Open(ctx context.Context, files []source.Source, fields []loader.Field,
	encode func(ctx context.Context, text []byte, row *loader.Row) error, o Options) (*Dataset, error) {
	o, err := o.withDefaults(files)
	if encode == nil {
		err = errors.Join(err, &loader.OptionError{Package: "lines", Option: "encode", Value: "nil", Want: "a function"})
	}
	if _, invalid := loader.NewLayout(fields, 1); invalid != nil {
		err = errors.Join(err, invalid)
	}
	if err != nil {
		return nil, err
	}
	d := &Dataset{encode: encode}
	for _, f := range fields {
		d.fields = append(d.fields, f.Clone())
	}
	for _, s := range files {
		if err := d.open(ctx, s, o); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if d.sum, err = source.Fingerprint(ctx, files); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	for _, x := range d.indexes {
		d.sum = mix.Hash(d.sum, uint64(x.Sum), uint64(x.Records))
	}
	return d, nil
}

// open adds a file.
func (d *Dataset) open(ctx context.Context, s source.Source, o Options) error {
	if o.Mapped {
		s = source.Mapped(s)
	}
	f, err := s.Open(ctx)
	if err != nil {
		return err
	}
	d.files = append(d.files, f)
	x, report, err := keep(ctx, s, f, o)
	if err != nil {
		return err
	}
	d.indexes, d.reports = append(d.indexes, x), append(d.reports, report)
	if !d.ends.Add(x.Records) {
		return &source.FormatError{Format: "lines", File: f.Name(), Offset: -1, Record: -1,
			Want: fmt.Sprintf("at most %d records in all files", math.MaxInt), Got: "more"}
	}
	return nil
}

// Len is the number of records in all files.
func (d *Dataset) Len() int { return d.ends.Len() }

// Fields are those of a sample.
func (d *Dataset) Fields() []loader.Field { return d.fields }

// Fingerprint tells the files from others by their names and sizes, and by a checksum of all
// records: see source.Fingerprint.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Indexes says where the index of each file is, and whether it was made by Open.
func (d *Dataset) Indexes() []Index { return slices.Clone(d.reports) }

// Origin is the file of a record, its offset and its number there. It reads the index; where
// that fails the offset is -1.
func (d *Dataset) Origin(index int) loader.Origin {
	file, record := d.ends.Locate(index)
	var b [entryBytes]byte
	e, err := d.indexes[file].entry(context.Background(), record, &b)
	if err != nil {
		e.offset = -1
	}
	return loader.Origin{File: d.files[file].Name(), Offset: e.offset, Record: int64(record)}
}

// Read has encode write a record. The error is encode's, a *source.Error, or, for a file that
// is not any more what its index is of, a *source.FormatError that wraps source.ErrChanged.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	file, record := d.ends.Locate(index)
	s := d.scratch.Of(row)
	e, err := d.indexes[file].entry(ctx, record, &s.entry)
	if err != nil {
		return err
	}
	text, err := d.text(ctx, file, e, s)
	if err == nil {
		err = d.encode(ctx, text, row)
	}
	if format, ok := err.(*source.FormatError); ok && format.File == "" {
		placed := *format
		placed.File, placed.Record, placed.Offset = d.files[file].Name(), int64(record), e.offset+max(0, format.Offset)
		return &placed
	}
	return err
}

// text reads a record, with the byte before it and two behind, if there are as many.
func (d *Dataset) text(ctx context.Context, file int, e entry, s *scratch) ([]byte, error) {
	f := d.files[file]
	if e.offset < 0 || e.offset > f.Size() || int64(e.length) > f.Size()-e.offset {
		return nil, d.changed(file, "the end of the file")
	}
	from, to := max(0, e.offset-1), min(f.Size(), e.offset+int64(e.length)+2)
	n := int(to - from)
	if cap(s.text) < n {
		s.text = make([]byte, n+n/4)
	}
	b := s.text[:n]
	if err := source.ReadFull(ctx, f, b, from); err != nil {
		return nil, err
	}
	before, text := b[:e.offset-from], b[e.offset-from:][:e.length:e.length]
	if !begins(e.offset, before) || !closes(b[len(before)+e.length:]) || crc32.Checksum(text, castagnoli) != e.sum {
		return nil, d.changed(file, "other bytes")
	}
	return text, nil
}

// begins reports whether a line may begin at an offset behind this byte: behind another line,
// or at the beginning and behind the mark that may be there.
func begins(offset int64, before []byte) bool {
	return offset == 0 || before[0] == '\n' || offset == int64(len(byteOrderMark)) && before[0] == byteOrderMark[2]
}

// closes reports whether a line may end before these bytes.
func closes(behind []byte) bool {
	return len(behind) == 0 || behind[0] == '\n' || behind[0] == '\r' && (len(behind) == 1 || behind[1] == '\n')
}

// changed is the error for a record that is not the one that the index knows.
func (d *Dataset) changed(file int, got string) error {
	where := d.reports[file].Path
	if where == "" {
		where = "the index"
	}
	return &source.FormatError{Format: "lines", Want: fmt.Sprintf("the record that %s knows", where), Got: got, Err: source.ErrChanged}
}

// Close closes the files and the indexes. It doesn't wait for reads under way; later ones fail
// with fs.ErrClosed.
func (d *Dataset) Close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	for _, x := range d.indexes {
		errs = append(errs, x.entries.Close())
	}
	return errors.Join(errs...)
}
