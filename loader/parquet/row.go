package parquet

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/convert"
	"github.com/leat-go/leat/loader/source"
)

// Row is a row of a table.
type Row struct {
	batch  arrow.RecordBatch
	at     int
	file   string
	number int64
	masks  map[string]string
	dims   []int // scratch
}

// Origin is the file and the row's number in it.
func (r *Row) Origin() loader.Origin {
	return loader.Origin{File: r.file, Offset: -1, Record: r.number}
}

// Column is the array that has the column's values, and the place of this row's in it. A column that
// there is not is a *source.FormatError.
func (r *Row) Column(name string) (a arrow.Array, at int, err error) {
	schema := r.batch.Schema()
	for i := range schema.NumFields() {
		if schema.Field(i).Name == name {
			return r.batch.Column(i), r.at, nil
		}
	}
	var has []string
	for _, f := range schema.Fields() {
		has = append(has, f.Name)
	}
	return nil, 0, r.failure(name, "a column of that name", fmt.Sprintf("columns %q", has))
}

// Bytes are those of a string, of binary data, or of a picture as Hugging Face stores it: a struct
// of bytes and path. They are borrowed, and stay as they are. A null, and a picture of which there is
// only a path, are a *source.FormatError.
func (r *Row) Bytes(column string) ([]byte, error) {
	a, at, err := r.Column(column)
	if err != nil {
		return nil, err
	}
	a, at = plain(a, at)
	if a.IsNull(at) {
		return nil, r.failure(column, "a value", "null")
	}
	if s, ok := a.(*array.Struct); ok {
		t := s.DataType().(*arrow.StructType)
		i, ok := t.FieldIdx("bytes")
		if !ok {
			return nil, r.failure(column, "a struct with bytes", t.String())
		}
		if a, at = plain(s.Field(i), at); a.IsNull(at) {
			got := "null"
			if i, ok := t.FieldIdx("path"); ok {
				if path, at := plain(s.Field(i), at); !path.IsNull(at) {
					got = "a path alone: " + path.ValueStr(at)
				}
			}
			return nil, r.failure(column, "bytes", got)
		}
	}
	b, ok := bytesOf(a, at)
	if !ok {
		return nil, r.failure(column, "bytes or a string", a.DataType().String())
	}
	return b, nil
}

// plain is where a value is behind extensions and dictionaries.
func plain(a arrow.Array, at int) (arrow.Array, int) {
	for {
		switch d := a.(type) {
		case *array.Dictionary:
			if d.IsNull(at) {
				return d, at
			}
			a, at = d.Dictionary(), d.GetValueIndex(at)
		case array.ExtensionArray:
			a = d.Storage()
		default:
			return a, at
		}
	}
}

func bytesOf(a arrow.Array, at int) ([]byte, bool) {
	switch a := a.(type) {
	case *array.String:
		return borrow(a.Value(at)), true
	case *array.LargeString:
		return borrow(a.Value(at)), true
	case *array.Binary:
		return a.Value(at), true
	case *array.LargeBinary:
		return a.Value(at), true
	case *array.FixedSizeBinary:
		return a.Value(at), true
	}
	return nil, false
}

// borrow is a string's bytes, which nobody writes to.
func borrow(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Write writes a column to the field of its name. Whole numbers, among them dates and times as they
// are stored, must keep their value in the field's type. Lists must have the field's shape, or of a
// ragged field all dimensions but the first; those in a list must be of one length. Strings and
// pictures go to uint8. The error is a *source.FormatError, which says the row, a
// *loader.SizeError or a *loader.FieldError.
func (r *Row) Write(row *loader.Row, column string) error {
	a, at, err := r.Column(column)
	if err != nil {
		return err
	}
	a, at = plain(a, at)
	mask, masked := r.masks[column]
	if null := a.IsNull(at); null && !masked {
		return r.failure(column, "a value", "null")
	} else if masked {
		there := uint8(1)
		if null {
			there = 0
		}
		if err := loader.Write(row, mask, there); err != nil || null {
			if null && err == nil {
				err = blank(row, column)
			}
			return err
		}
	}
	leaf, from, to, ok := arrow.Array(nil), 0, 0, false
	r.dims = r.dims[:0]
	if isList(a) {
		leaf, from, to, r.dims, ok = flatten(a, at, at+1, r.dims)
		if !ok {
			return r.failure(column, "lists of one length, without nulls", "a list of others")
		}
		r.dims = r.dims[1:] // there is one list
	} else {
		leaf, from, to = a, at, at+1
	}
	t, data, ok := numbers(leaf, from, to)
	if !ok {
		b, err := r.Bytes(column)
		if err != nil {
			return err
		}
		return loader.Write(row, column, b...)
	}
	if i, ok := row.Layout().Lookup(column); ok {
		if f := &row.Layout().Fields()[i]; !sameShape(f, r.dims) {
			return r.failure(column, f.Field.String(), fmt.Sprintf("%v%v", t, r.dims))
		}
	}
	if err = convert.Write(row, column, t, data); err == nil {
		return nil
	}
	if unfit, ok := err.(*convert.Error); ok {
		return r.failure(column, unfit.Want, unfit.Got)
	}
	return err
}

// blank fills a field for which there is no value.
func blank(row *loader.Row, field string) error {
	clear(row.Bytes(field))
	if i, ok := row.Layout().Lookup(field); ok && row.Layout().Fields()[i].Ragged != nil {
		return row.SetLen(field, 0)
	}
	return nil
}

// sameShape reports whether a value of these dimensions is the field's, or one of its lengths.
func sameShape(f *loader.FieldLayout, dims []int) bool {
	if f.Ragged == nil {
		return slices.Equal(f.Shape, dims)
	}
	return len(f.Shape) == len(dims) && slices.Equal(f.Shape[1:], dims[1:])
}

func (r *Row) failure(field, want, got string) error {
	return &source.FormatError{Format: "parquet", File: r.file, Offset: -1, Record: r.number, Field: field, Want: want, Got: got}
}
