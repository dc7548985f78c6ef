package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// table is one file.
type table struct {
	file    source.File
	meta    *metadata.FileMetaData
	schema  *arrow.Schema // of the columns that are read
	leaves  []int         // the columns of the file that these consist of
	strings []int         // of them those that are read by their dictionary
	groups  []int64       // where each row group begins, in rows, and where the last ends
	limit   int64
}

// batchRows is how many rows are decoded at a time.
const batchRows = 1024

// openTable reads a file's description.
func openTable(ctx context.Context, f source.File, o Options) (t *table, err error) {
	t = &table{file: f, limit: o.MaxBytes}
	err = t.guard(0, func() error {
		r, err := file.NewParquetReader(t.reader(ctx), file.WithReadProps(parquet.NewReaderProperties(newMeter(o.MaxBytes))))
		if err != nil {
			return err
		}
		t.meta = r.MetaData()
		t.dropArrowSchema()
		at := int64(0)
		for i := range r.NumRowGroups() {
			n := t.meta.RowGroup(i).NumRows()
			if n < 0 || at+n < at || at+n > 1<<40 {
				return fmt.Errorf("%d rows in row group %d", n, i)
			}
			t.groups = append(t.groups, at)
			at += n
		}
		t.groups = append(t.groups, at)
		return t.choose(r, o.Columns)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// dropArrowSchema takes out the schema that Arrow's writers add. It is read without a check of
// its lengths, so that one wrong byte in it asks for more memory than there is, and that ends the
// process. The file's own schema has the same values: Arrow's would have them as other arrays, such
// as lists of one length.
func (t *table) dropArrowSchema() {
	kept := t.meta.FileMetaData.KeyValueMetadata[:0]
	for _, pair := range t.meta.FileMetaData.KeyValueMetadata {
		if pair.Key != "ARROW:schema" {
			kept = append(kept, pair)
		}
	}
	t.meta.FileMetaData.KeyValueMetadata = kept
}

// choose finds the columns that are read.
func (t *table) choose(r *file.Reader, names []string) error {
	whole, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, newMeter(t.limit))
	if err != nil {
		return err
	}
	var fields []arrow.Field
	var has []string
	for i := range whole.Manifest.Fields {
		f := &whole.Manifest.Fields[i]
		has = append(has, f.Field.Name)
		if names != nil && !slices.Contains(names, f.Field.Name) {
			continue
		}
		fields = append(fields, *f.Field)
		t.addLeaves(f)
	}
	for _, name := range names {
		if !slices.Contains(has, name) {
			return &loader.OptionError{Package: "parquet", Option: "Columns", Value: name, Want: fmt.Sprintf("columns of %s, %q", t.file.Name(), has)}
		}
	}
	t.schema = arrow.NewSchema(fields, nil)
	// Values that a dictionary has once stay once: a small file can hold a large one many times.
	for _, leaf := range t.leaves {
		for i := range t.meta.NumRowGroups() {
			c, err := t.meta.RowGroup(i).ColumnChunk(leaf)
			if err != nil {
				return err
			}
			if c.Type() == parquet.Types.ByteArray && c.HasDictionaryPage() {
				t.strings = append(t.strings, leaf)
				break
			}
		}
	}
	return nil
}

func (t *table) addLeaves(f *pqarrow.SchemaField) {
	if f.IsLeaf() {
		t.leaves = append(t.leaves, f.ColIndex)
	}
	for i := range f.Children {
		t.addLeaves(&f.Children[i])
	}
}

// group is the row group that a row is in.
func (t *table) group(row int64) int {
	group, found := slices.BinarySearch(t.groups, row)
	if !found {
		group--
	}
	for t.groups[group+1] <= row { // groups without rows
		group++
	}
	return group
}

// rows begins to read a row group. What it decodes counts on m.
func (t *table) rows(ctx context.Context, group int, m *meter) (pqarrow.RecordReader, error) {
	props := parquet.NewReaderProperties(m)
	props.BufferedStreamEnabled = true
	r, err := file.NewParquetReader(t.reader(ctx), file.WithReadProps(props), file.WithMetadata(t.meta))
	if err != nil {
		return nil, err
	}
	arrowProps := pqarrow.ArrowReadProperties{BatchSize: batchRows}
	for _, leaf := range t.strings {
		arrowProps.SetReadDict(leaf, true)
	}
	whole, err := pqarrow.NewFileReader(r, arrowProps, m)
	if err != nil {
		return nil, err
	}
	return whole.GetRecordReader(ctx, t.leaves, []int{group})
}

// guard calls what reads, and makes its failures and its panics errors of the file. group is the row
// group that it reads.
func (t *table) guard(group int, read func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			cause, ok := p.(error)
			if !ok {
				cause = fmt.Errorf("%v", p)
			}
			var limit *limitError
			if !errors.As(cause, &limit) {
				cause = &loader.PanicError{Value: cause, Stack: debug.Stack()}
			}
			err = t.failure(group, cause)
		}
	}()
	if err = read(); err != nil && err != io.EOF {
		err = t.failure(group, err)
	}
	return err
}

// failure is an error of the file, unless it is one already, or that of reading its bytes.
func (t *table) failure(group int, err error) error {
	var own *source.FormatError
	var bytes *source.Error
	var option *loader.OptionError
	if errors.As(err, &own) || errors.As(err, &bytes) || errors.As(err, &option) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &source.FormatError{Format: "parquet", File: t.file.Name(), Offset: -1, Record: -1, Want: "a whole Parquet file", Got: err.Error(), Err: err}
	if t.schema != nil {
		e.Field, e.Want = fmt.Sprintf("row group %d", group), "rows as the file describes them"
	}
	var limit *limitError
	if errors.As(err, &limit) {
		e.Want = "a row group that is decoded in Options.MaxBytes"
	}
	return e
}

// reader is the file for packages that know no context.
func (t *table) reader(ctx context.Context) parquet.ReaderAtSeeker {
	return io.NewSectionReader(source.ReaderAt(ctx, t.file), 0, t.file.Size())
}
