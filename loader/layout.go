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
	// Ragged, where it is not nil, says that samples differ in their first dimension, of
	// which Shape has the maximum.
	Ragged *Ragged
}

// String is the field as its declaration reads: image uint8[28 28], label int64
// for a scalar, and tokens uint16[≤2048] where samples differ in length.
func (f Field) String() string {
	if len(f.Shape) == 0 {
		return fmt.Sprintf("%s %v", f.Name, f.DType)
	}
	shape := fmt.Sprint(f.Shape)
	if f.Ragged != nil {
		shape = "[≤" + shape[1:]
	}
	return fmt.Sprintf("%s %v%s", f.Name, f.DType, shape)
}

// Clone is a copy that shares nothing with f.
func (f Field) Clone() Field {
	f.Shape = slices.Clone(f.Shape)
	if f.Ragged != nil {
		r := *f.Ragged
		f.Ragged = &r
	}
	return f
}

// cloneFields shares nothing with fields: their caller may go on to change them.
func cloneFields(fields []Field) []Field {
	cloned := make([]Field, len(fields))
	for i, f := range fields {
		cloned[i] = f.Clone()
	}
	return cloned
}

// FieldLayout is a field's place in a batch.
type FieldLayout struct {
	Field
	// Offset is where the field's rows begin, a multiple of Align.
	Offset int64
	// RowBytes is the size of one sample's value, of a ragged field that of the longest
	// that there may be. Rows follow each other densely.
	RowBytes int64
	// Size is how many bytes from Offset on are the field's: those of a full batch of the
	// longest rows.
	Size int64
	// Of is the number of the ragged field that this one tells of: itself, or the one whose
	// Ragged names it. It is -1 for all other fields.
	Of int
	// Added is set for a field that another one's Ragged names, which the loader fills.
	Added bool

	form    form
	element int64 // the bytes of one element along the first dimension of a ragged field
	ragged  int   // which of the layout's ragged fields it is, -1 if it is none
}

// Layout is where everything lies in a batch: field i of row r is the RowBytes
// bytes from Offset + r·RowBytes, but for ragged fields, of which rows are as long as
// each batch needs; see FieldLayout.Bytes. It is immutable and may be shared.
type Layout struct {
	fields  []FieldLayout // those that samples write, and behind them those that are added
	written int           // how many samples write
	ragged  []int         // the ragged ones among these
	byName  map[string]int
	holding fieldSet // the fields that samples write and that take any bytes
	batch   int
	fixed   int64 // the bytes of the fields that are not ragged, which lie in front
	bytes   int64
}

// NewLayout packs batch rows of the fields, in the order given, and the ragged ones behind
// all others, so that what every batch has whole lies together. Behind the fields it adds
// those that a Ragged names. Its error joins every mistake, each an *OptionError that names
// the field.
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
	numbers := make([]int, 0, len(fields)) // of the fields that are laid out, as given
	for i, f := range fields {
		rowBytes, err := f.rowBytes(i)
		if err == nil {
			err = l.name(f, f.option(i))
		}
		if err == nil {
			err = l.append(f.Clone(), rowBytes, i)
		}
		if err == nil {
			numbers = append(numbers, i)
		}
		errs = append(errs, err)
	}
	l.written = len(l.fields)
	for at := range l.written {
		errs = append(errs, l.addFields(at, numbers[at]))
	}
	if batch > 0 {
		errs = append(errs, l.placeAll(numbers)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l.holding = newFieldSet(len(l.fields))
	for i, f := range l.fields[:l.written] {
		if f.RowBytes > 0 {
			l.holding.add(i)
		}
	}
	return l, nil
}

// name takes the field's name, unless it is taken.
func (l *Layout) name(f Field, option string) error {
	if _, taken := l.byName[f.Name]; taken {
		return &OptionError{Option: option, Value: f.Name, Want: "a name that no other field has"}
	}
	l.byName[f.Name] = len(l.fields)
	return nil
}

// append enters a field that is not placed yet.
func (l *Layout) append(f Field, rowBytes int64, i int) error {
	p := FieldLayout{Field: f, RowBytes: rowBytes, Of: -1, ragged: -1}
	if f.Ragged != nil {
		if err := p.spread(i, l.batch); err != nil {
			return err
		}
		p.Of, p.ragged = len(l.fields), len(l.ragged)
		l.ragged = append(l.ragged, p.Of)
	}
	l.fields = append(l.fields, p)
	return nil
}

// placeAll gives every field its place: those that are not ragged first. numbers are
// those of the fields as they were given.
func (l *Layout) placeAll(numbers []int) (errs []error) {
	for _, ragged := range []bool{false, true} {
		for at := range l.fields {
			f := &l.fields[at]
			if f.Fixed() == ragged {
				continue
			}
			given := at
			if f.Added {
				given = f.Of
			}
			if end, ok := f.place(l.bytes, l.batch); ok {
				l.bytes = end
			} else {
				errs = append(errs, &OptionError{Option: f.option(numbers[given]), Value: f.Field,
					Want: fmt.Sprintf("a batch of %d whose size fits an int", l.batch)})
			}
		}
		if !ragged {
			l.fixed = l.bytes
		}
	}
	return errs
}

// place puts f behind bytes of others, and returns where it ends in a batch of the longest
// rows. It reports false if that fits no int.
func (f *FieldLayout) place(bytes int64, batch int) (end int64, ok bool) {
	rows := int64(batch)
	if f.form == offsets {
		rows++
	}
	offset, ok := add(bytes, (Align-bytes%Align)%Align)
	size, fits := multiply(f.RowBytes, rows)
	if !ok || !fits {
		return 0, false
	}
	f.Offset, f.Size = offset, size
	end, ok = add(offset, size)
	return end, ok && end <= math.MaxInt
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

// Size is the size of a full batch, whose rows are as long as they may be: exact, without
// rounding.
func (l *Layout) Size() int64 { return l.bytes }

// Fixed is the size of the fields that are not ragged in a full batch. They lie in front.
func (l *Layout) Fixed() int64 { return l.fixed }

// BatchSize is the number of rows a batch has room for.
func (l *Layout) BatchSize() int { return l.batch }

// Fields borrows the fields in their order, and behind them those that were added for
// ragged ones; the caller does not write to them.
func (l *Layout) Fields() []FieldLayout { return l.fields }

// Written borrows the fields without those that were added: what a sample writes.
func (l *Layout) Written() []FieldLayout { return l.fields[:l.written] }

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

// names are the fields that samples write without their places, for errors.
func (l *Layout) names() (fields []Field) {
	for _, f := range l.Written() {
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

// Rows borrows the rows of a field of a batch. A field of no bytes gives an empty slice.
func (l *Layout) Rows(field int, batch Filled) []byte {
	f := &l.fields[field]
	end := f.Offset + f.Bytes(batch.N, batch.Extent(field))
	return batch.Slot.Bytes[f.Offset:end:end]
}

// multiply and add work on numbers that are not negative.
func multiply(a, b int64) (product int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	return int64(low), high == 0 && low <= math.MaxInt64
}

func add(a, b int64) (sum int64, ok bool) { return a + b, a <= math.MaxInt64-b }
