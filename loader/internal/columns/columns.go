// Package columns has the samples of arrays whose first dimension counts them. Several arrays
// side by side, of one file or of more, are the fields of a sample; files one behind the other
// are more samples.
package columns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/ends"
	"github.com/leat-go/leat/loader/source"
)

// Array is where the elements of an array lie in a file, row-major and without gaps.
type Array struct {
	Name  string
	DType dtype.Type
	// Shape has at least one dimension.
	Shape []int
	// File is borrowed. It has all elements from Offset on.
	File   source.File
	Offset int64
	// BigEndian is the order of the bytes of an element in the file.
	BigEndian bool
}

func (a *Array) field() loader.Field {
	return loader.Field{Name: a.Name, DType: a.DType, Shape: a.Shape[1:]}
}

// Dataset is the samples of some arrays. Its methods but Add may be called by several
// goroutines at once.
type Dataset struct {
	format string // as errors name it
	fields []loader.Field
	parts  [][]Array // of each file those of the fields, in their order
	ends   ends.Ends
}

// New makes a Dataset of no samples. format is what errors begin with.
func New(format string) *Dataset { return &Dataset{format: format} }

// Add adds the samples of the arrays of one more file, which has that name. All have the same
// length, and the fields of the files before, in the same order.
func (d *Dataset) Add(file string, arrays []Array) error {
	if len(arrays) == 0 {
		return d.wrong(file, "", "one array or more", "none")
	}
	for i := range arrays {
		a := &arrays[i]
		if len(a.Shape) == 0 {
			return d.wrong(file, a.Name, "an array of one dimension or more, the first that of the samples", "a single element")
		}
		if a.Shape[0] != arrays[0].Shape[0] {
			return d.wrong(file, a.Name, fmt.Sprintf("%d samples, as %s has", arrays[0].Shape[0], arrays[0].Name), fmt.Sprint(a.Shape[0]))
		}
	}
	if d.fields == nil {
		if err := d.define(file, arrays); err != nil {
			return err
		}
	}
	if err := d.alike(file, arrays); err != nil {
		return err
	}
	if !d.ends.Add(int64(arrays[0].Shape[0])) {
		return d.wrong(file, "", fmt.Sprintf("at most %d samples in all files", math.MaxInt), "more")
	}
	d.parts = append(d.parts, slices.Clone(arrays))
	return nil
}

// define takes the fields of the first file.
func (d *Dataset) define(file string, arrays []Array) error {
	var fields []loader.Field
	for i := range arrays {
		fields = append(fields, arrays[i].field())
	}
	if _, err := loader.NewLayout(fields, 1); err != nil {
		var option *loader.OptionError
		if errors.As(err, &option) {
			got := fmt.Sprint(option.Value)
			if got == "" { // such as a name
				got = "nothing"
			}
			return &source.FormatError{Format: d.format, File: file, Offset: -1, Record: -1,
				Field: option.Option, Want: option.Want, Got: got, Err: err}
		}
		return err
	}
	d.fields = fields
	return nil
}

// alike reports arrays that are not those of the first file.
func (d *Dataset) alike(file string, arrays []Array) error {
	if len(arrays) != len(d.fields) {
		return d.wrong(file, "", fmt.Sprintf("the %d arrays of the first file", len(d.fields)), fmt.Sprint(len(arrays)))
	}
	for i := range arrays {
		if f := arrays[i].field(); !f.Equal(d.fields[i]) {
			return d.wrong(file, f.Name, fmt.Sprintf("%v, as in the first file", d.fields[i]), f.String())
		}
	}
	return nil
}

func (d *Dataset) wrong(file, field, want, got string) error {
	return &source.FormatError{Format: d.format, File: file, Offset: -1, Record: -1, Field: field, Want: want, Got: got}
}

// Len is the number of samples.
func (d *Dataset) Len() int { return d.ends.Len() }

// Fields are those of a sample.
func (d *Dataset) Fields() []loader.Field { return d.fields }

// Origin is where a sample's first field lies.
func (d *Dataset) Origin(index int) loader.Origin {
	part, at := d.ends.Locate(index)
	a := &d.parts[part][0]
	return loader.Origin{File: a.File.Name(), Offset: a.Offset + int64(at)*rowBytes(a), Record: int64(at)}
}

func rowBytes(a *Array) int64 {
	n := int64(a.DType.Size())
	for _, dim := range a.Shape[1:] {
		n *= int64(dim)
	}
	return n
}

// Read reads a sample.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	part, at := d.ends.Locate(index)
	for i := range d.fields {
		a, to := &d.parts[part][i], row.Bytes(d.fields[i].Name)
		from := a.Offset + int64(at)*int64(len(to))
		if err := source.ReadFull(ctx, a.File, to, from); err != nil {
			return err
		}
		if a.BigEndian {
			TurnBytes(to, a.DType.Size())
		}
		if a.DType == dtype.Bool {
			if bad := notBool(to); bad >= 0 {
				return &source.FormatError{Format: d.format, File: a.File.Name(), Offset: from + int64(bad), Record: int64(at),
					Field: a.Name, Want: "0 or 1", Got: fmt.Sprint(to[bad])}
			}
		}
	}
	return nil
}

// notBool is the first byte that is no bool, or -1.
func notBool(b []byte) int {
	return slices.IndexFunc(b, func(v byte) bool { return v > 1 })
}
