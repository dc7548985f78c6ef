package parquet

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/internal/given"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Table is the rows of some files, in the order of the files. It is a loader.Fingerprinter and a
// loader.Locator, and Dataset makes a loader.Dataset of it. Its methods may be called by several
// goroutines at once.
type Table struct {
	options Options
	tables  []*table
	ends    ends.Ends
	cache   cache
	sum     uint64
}

// Open reads the descriptions at the ends of the files. All have the same columns. The Table owns
// the open files: close it behind the loaders that read it.
//
// The error is a *source.Error for a file that can't be read, a *source.FormatError for one that is
// no Parquet file, is encrypted, or has other columns than the first, and a *loader.OptionError for
// each mistake in the options.
func Open(ctx context.Context, files []source.Source, o Options) (*Table, error) {
	o, err := o.filled()
	if err = errors.Join(err, given.Files("parquet", files)); err != nil {
		return nil, err
	}
	t := &Table{options: o}
	t.cache.limit = o.CacheBytes
	for _, f := range files {
		if err := t.open(ctx, f); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	if t.sum, err = source.Fingerprint(ctx, files); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.sum = mix.Hash(t.sum, uint64(t.Len()))
	return t, nil
}

func (t *Table) open(ctx context.Context, from source.Source) error {
	f, err := from.Open(ctx)
	if err != nil {
		return err
	}
	one, err := openTable(ctx, f, t.options)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.tables = append(t.tables, one)
	if first := t.tables[0]; !one.schema.Equal(first.schema) {
		return &source.FormatError{Format: "parquet", File: f.Name(), Offset: -1, Record: -1, Want: fmt.Sprintf("the columns of %s, %v", first.file.Name(), first.schema), Got: one.schema.String()}
	}
	if !t.ends.Add(one.groups[len(one.groups)-1]) {
		return &loader.OptionError{Package: "parquet", Option: "files", Value: "too many rows", Want: "as many as an int counts"}
	}
	return nil
}

// Len is the number of rows.
func (t *Table) Len() int { return t.ends.Len() }

// Schema is that of the columns that are read.
func (t *Table) Schema() *arrow.Schema { return t.tables[0].schema }

// Fingerprint tells the files from others by their names and sizes: see source.Fingerprint.
func (t *Table) Fingerprint() uint64 { return t.sum }

// Origin is the file and the number in it of a row. Its offset is not known.
func (t *Table) Origin(index int) loader.Origin {
	file, at := t.ends.Locate(index)
	return loader.Origin{File: t.tables[file].file.Name(), Offset: -1, Record: int64(at)}
}

// Row reads a row. It stays valid: the memory is the collector's.
func (t *Table) Row(ctx context.Context, index int) (*Row, error) {
	row := new(Row)
	return row, t.row(ctx, index, row)
}

func (t *Table) row(ctx context.Context, index int, to *Row) error {
	file, at := t.ends.Locate(index)
	one := t.tables[file]
	group := one.group(int64(at))
	batches, err := t.cache.get(ctx, key{file, group}, one)
	if err != nil {
		return err
	}
	in := int64(at) - one.groups[group]
	for _, b := range batches {
		if n := b.NumRows(); in >= n {
			in -= n
			continue
		}
		*to = Row{batch: b, at: int(in), file: one.file.Name(), number: int64(at), masks: t.options.Masks}
		return nil
	}
	return one.failure(group, fmt.Errorf("%d rows in place of %d", int64(at)-one.groups[group]-in, one.groups[group+1]-one.groups[group]))
}

// Dataset is the rows as a loader.Dataset of the fields: encode writes a row of the table to one of
// a batch, under the rules of loader.Dataset.Read. If encode is nil each field is the column of its
// name, as Row.Write writes it, apart from those of Options.Masks.
func (t *Table) Dataset(fields []loader.Field, encode func(ctx context.Context, r *Row, row *loader.Row) error) loader.Dataset {
	if encode == nil {
		encode = byName(fields, t.options.Masks)
	}
	return &dataset{Table: t, fields: fields, encode: encode}
}

func byName(fields []loader.Field, masks map[string]string) func(context.Context, *Row, *loader.Row) error {
	var columns []string
	for _, f := range fields {
		isMask := false
		for _, mask := range masks {
			isMask = isMask || mask == f.Name
		}
		if !isMask {
			columns = append(columns, f.Name)
		}
	}
	return func(_ context.Context, r *Row, row *loader.Row) error {
		for _, name := range columns {
			if err := r.Write(row, name); err != nil {
				return err
			}
		}
		return nil
	}
}

type dataset struct {
	*Table
	fields []loader.Field
	encode func(ctx context.Context, r *Row, row *loader.Row) error
}

// Fields implements loader.Dataset.
func (d *dataset) Fields() []loader.Field { return d.fields }

// Read implements loader.Dataset.
func (d *dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	var r Row
	if err := d.row(ctx, index, &r); err != nil {
		return err
	}
	return d.encode(ctx, &r, row)
}

// Close closes the files. It doesn't wait for reads under way; later ones fail with
// fs.ErrClosed, or are of a row group that is kept.
func (t *Table) Close() error {
	var errs []error
	for _, one := range t.tables {
		errs = append(errs, one.file.Close())
	}
	return errors.Join(errs...)
}
