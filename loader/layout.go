package loader

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/leat-go/leat/dtype"
)

// Align is what a field's place in a batch is aligned to, in bytes: enough for
// every vector load of a CPU and a GPU.
const Align = 256

// Field is one named value of every sample.
type Field struct {
	// Name tells a batch's fields apart. It is not empty.
	Name string
	// DType is the type of each element.
	DType dtype.Type
	// Shape is one sample's shape, outermost dimension first, row-major. Empty
	// means a scalar. A dimension may be 0: then the field takes no bytes.
	Shape []int
}

// String is the field as its declaration reads: image uint8[28 28], and label int64
// for a scalar.
func (f Field) String() string {
	if len(f.Shape) == 0 {
		return fmt.Sprintf("%s %v", f.Name, f.DType)
	}
	return fmt.Sprintf("%s %v%v", f.Name, f.DType, f.Shape)
}

// FieldLayout is a field's place in a batch.
type FieldLayout struct {
	Field
	// Offset is where the field's rows begin, a multiple of Align.
	Offset int64
	// RowBytes is the size of one sample's value; rows follow each other densely.
	RowBytes int64
}

// Layout is where everything lies in a batch: field i of row r is the RowBytes
// bytes from Offset + r·RowBytes. It is immutable and may be shared.
type Layout struct {
	fields  []FieldLayout
	byName  map[string]int
	holding fieldSet // the fields that take any bytes
	batch   int
	bytes   int64
}

// NewLayout packs batch rows of the fields, in the order given. Its error joins
// every mistake, each an *OptionError that names the field.
func NewLayout(fields []Field, batch int) (*Layout, error) {
	var errs []error
	if len(fields) == 0 {
		errs = append(errs, &OptionError{Option: "Fields", Value: "empty", Want: "at least one field"})
	}
	if batch < 1 || batch > maxBatch {
		errs = append(errs, &OptionError{Option: "batchSize", Value: batch, Want: fmt.Sprintf("1 to %d", maxBatch)})
		batch = 0
	}
	l := &Layout{batch: batch, byName: make(map[string]int, len(fields))}
	for i, f := range fields {
		rowBytes, err := f.rowBytes(i)
		if _, taken := l.byName[f.Name]; err == nil && taken {
			err = &OptionError{Option: f.option(i), Value: f.Name, Want: "a name that no other field has"}
		}
		l.byName[f.Name] = i
		if err == nil && batch > 0 {
			err = l.place(i, f, rowBytes)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l.holding = newFieldSet(len(l.fields))
	for i, f := range l.fields {
		if f.RowBytes > 0 {
			l.holding.add(i)
		}
	}
	return l, nil
}

// place appends f behind the fields placed so far.
func (l *Layout) place(i int, f Field, rowBytes int64) error {
	end := int64(-1)
	offset, ok := add(l.bytes, (Align-l.bytes%Align)%Align)
	size, fits := multiply(rowBytes, int64(l.batch))
	if ok && fits {
		end, ok = add(offset, size)
	}
	if !ok || !fits || end > math.MaxInt {
		return &OptionError{Option: f.option(i), Value: f, Want: fmt.Sprintf("a batch of %d whose size fits an int", l.batch)}
	}
	f.Shape = slices.Clone(f.Shape)
	l.fields = append(l.fields, FieldLayout{Field: f, Offset: offset, RowBytes: rowBytes})
	l.bytes = end
	return nil
}

// rowBytes checks the field by itself and returns one sample's size.
func (f Field) rowBytes(i int) (int64, error) {
	switch {
	case f.Name == "":
		return 0, &OptionError{Option: f.option(i), Value: "without a name", Want: "a name"}
	case f.DType == dtype.Invalid:
		return 0, &OptionError{Option: f.option(i), Value: "without a DType", Want: "a valid element type"}
	case !f.DType.Valid():
		return 0, &OptionError{Option: f.option(i), Value: f.DType, Want: "a valid element type"}
	case slices.ContainsFunc(f.Shape, func(dim int) bool { return dim < 0 }):
		return 0, &OptionError{Option: f.option(i), Value: f.Shape, Want: "dimensions of 0 or more"}
	case slices.Contains(f.Shape, 0):
		return 0, nil
	}
	size, ok := int64(f.DType.Size()), true
	for _, dim := range f.Shape {
		if size, ok = multiply(size, int64(dim)); !ok {
			return 0, &OptionError{Option: f.option(i), Value: f.Shape, Want: "a size that fits an int64"}
		}
	}
	return size, nil
}

// option is the field's name in an error: its own, and its number where it has none.
func (f Field) option(i int) string {
	if f.Name == "" {
		return fmt.Sprintf("Fields[%d]", i)
	}
	return fmt.Sprintf("Fields[%d] (%s)", i, f.Name)
}

// Size is the size of a full batch: exact, without rounding.
func (l *Layout) Size() int64 { return l.bytes }

// BatchSize is the number of rows a batch has room for.
func (l *Layout) BatchSize() int { return l.batch }

// Fields borrows the fields in their order; the caller does not write to them.
func (l *Layout) Fields() []FieldLayout { return l.fields }

// Lookup returns the number of the field of that name.
func (l *Layout) Lookup(name string) (field int, ok bool) {
	if len(l.fields) > few {
		field, ok = l.byName[name]
		return field, ok
	}
	for i := range l.fields {
		if l.fields[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// names are the fields without their places, for errors.
func (l *Layout) names() (fields []Field) {
	for _, f := range l.fields {
		fields = append(fields, f.Field)
	}
	return fields
}

// listed are fields for people to read.
func listed(fields []Field) string {
	const most = 20
	var names []string
	for _, f := range fields[:min(len(fields), most)] {
		names = append(names, f.String())
	}
	if more := len(fields) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// few is up to how many names are compared one by one, which is faster than to hash one.
const few = 8

// Rows borrows the first n rows of a field in mem, which holds a batch. A field
// of no bytes gives an empty slice.
func (l *Layout) Rows(field int, mem []byte, n int) []byte {
	f := &l.fields[field]
	end := f.Offset + int64(n)*f.RowBytes
	return mem[f.Offset:end:end]
}

// multiply and add work on numbers that are not negative.
func multiply(a, b int64) (product int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	return int64(low), high == 0 && low <= math.MaxInt64
}

func add(a, b int64) (sum int64, ok bool) { return a + b, a <= math.MaxInt64-b }
