package loader

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Ragged says how a field is batched whose samples differ in length: in their first
// dimension, of which Field.Shape has the maximum, at most 2³¹-1. The zero value pads: every
// row of a batch is as long as the batch's longest sample. Only that is copied to a device.
//
// The fields that Length, Mask and Offsets name are added by the loader, behind all others,
// and filled by it. Where a name is empty the field is not there.
type Ragged struct {
	// Multiple rounds the length of a batch's rows up to a multiple of it, at most to the
	// maximum, so that fewer lengths occur. 0 means 1.
	Multiple int
	// Pad is the value of the elements behind a sample's own: one that the field's type
	// holds exactly.
	Pad float64
	// Length names a field with the length of each sample: a scalar, int32.
	Length string
	// Mask names a field, uint8, that is 1 for each of a sample's own elements along the
	// first dimension and 0 for padding. Its rows are as long as the field's.
	Mask string
	// Offsets packs instead of padding: the samples lie one behind the other, their first
	// dimension and that of the rows joined to one, and the field that it names has where
	// each begins along that and, last, where all end: int32, one more than there are rows,
	// as kernels for attention over sequences of any length take them. Then the batch size
	// times the maximum is at most 2³¹-1, and Multiple, Pad and Mask have no meaning.
	Offsets string
	// Like names the ragged field of a device's input whose lengths the field has, if it is
	// not the one of its own name. It is for what a device computes, as the fields of a
	// transform, and not for a dataset's.
	Like string
}

// Equal reports whether two fields are declared alike. A Shape of nil is an empty one, and a
// Pad that is NaN is like another one.
func (f Field) Equal(as Field) bool {
	if f.Name != as.Name || f.DType != as.DType || !slices.Equal(f.Shape, as.Shape) {
		return false
	}
	if f.Ragged == nil || as.Ragged == nil {
		return f.Ragged == as.Ragged
	}
	return f.Ragged.equal(*as.Ragged)
}

func (r Ragged) equal(as Ragged) bool {
	pads := math.Float64bits(r.Pad) == math.Float64bits(as.Pad) || math.IsNaN(r.Pad) && math.IsNaN(as.Pad)
	r.Pad, as.Pad = 0, 0
	return pads && r == as
}

// form is how the rows of a field follow each other in a batch.
type form uint8

const (
	dense   form = iota // all of one size
	padded              // all of the batch's own size
	packed              // each of its own size
	offsets             // dense, with one row more than the batch
)

// ragged reports whether what a batch uses depends on its samples' lengths.
func (f form) ragged() bool { return f == padded || f == packed }

// spread works out how the rows of a ragged field lie.
func (f *FieldLayout) spread(i, batch int) error {
	if err := f.validateRagged(i, batch); err != nil {
		return err
	}
	f.form = padded
	if f.Ragged.Offsets != "" {
		f.form = packed
	}
	if f.RowBytes > 0 { // else no sample has any bytes
		f.element = f.RowBytes / int64(f.Shape[0])
	}
	return nil
}

// validateRagged reports every mistake in the field's Ragged.
func (f *FieldLayout) validateRagged(i, batch int) error {
	var errs []error
	r := f.Ragged
	check := func(ok bool, option string, value any, want string) {
		if !ok {
			errs = append(errs, &OptionError{Option: f.option(i) + option, Value: value, Want: want})
		}
	}
	check(len(f.Shape) > 0, "", f.Field, "a dimension or more, since it is ragged")
	check(len(f.Shape) == 0 || f.Shape[0] <= math.MaxInt32, "", f.Field, fmt.Sprintf("at most %d elements along the ragged dimension", math.MaxInt32))
	check(r.Multiple >= 0, ".Ragged.Multiple", r.Multiple, "0 (no rounding) or more")
	_, holds := elementOf(f.DType, r.Pad)
	check(holds, ".Ragged.Pad", r.Pad, fmt.Sprintf("a value that %v holds exactly", f.DType))
	if r.Offsets != "" && len(f.Shape) > 0 {
		const without = ": with Offsets there is no padding"
		check(r.Multiple <= 1, ".Ragged.Multiple", r.Multiple, "0 or 1"+without)
		check(r.Pad == 0, ".Ragged.Pad", r.Pad, "0"+without)
		check(r.Mask == "", ".Ragged.Mask", r.Mask, "no name"+without)
		total, fits := multiply(int64(f.Shape[0]), int64(batch))
		check(fits && total <= math.MaxInt32, "", f.Field, fmt.Sprintf("at most %d elements along the ragged dimension in a batch of %d, which int32 offsets tell", math.MaxInt32, batch))
	}
	return errors.Join(errs...)
}

// addFields appends the fields that the Ragged of the field at at names.
func (l *Layout) addFields(at, i int) error {
	owner := l.fields[at]
	r := owner.Ragged
	if r == nil {
		return nil
	}
	var errs []error
	added := func(option string, f FieldLayout) {
		if f.Name == "" {
			return
		}
		f.Of, f.Added, f.ragged = at, true, -1
		if err := l.name(f.Field, owner.option(i)+option); err != nil {
			errs = append(errs, err)
			return
		}
		l.fields = append(l.fields, f)
	}
	added(".Ragged.Length", FieldLayout{Field: Field{Name: r.Length, DType: lengthType}, RowBytes: 4})
	added(".Ragged.Offsets", FieldLayout{Field: Field{Name: r.Offsets, DType: lengthType}, RowBytes: 4, form: offsets})
	added(".Ragged.Mask", FieldLayout{Field: Field{Name: r.Mask, DType: maskType, Shape: owner.Shape[:1:1], Ragged: &Ragged{Multiple: r.Multiple}},
		RowBytes: int64(owner.Shape[0]), form: padded, element: 1})
	return errors.Join(errs...)
}

// Bytes is how many bytes from Offset on the field takes in a batch of that many rows.
// extent is what Filled.Extent says of it, which matters for a ragged field alone.
func (f *FieldLayout) Bytes(rows, extent int) int64 {
	switch f.form {
	case padded:
		return int64(rows) * int64(extent) * f.element
	case packed:
		return int64(extent) * f.element
	case offsets:
		return (int64(rows) + 1) * f.RowBytes
	}
	return int64(rows) * f.RowBytes
}

// AppendShape appends to dims the field's shape in such a batch, outermost dimension first:
// the rows and a sample's own shape, in which a ragged dimension is extent. Where samples
// are packed the first two are one, extent, and offsets have one row more.
func (f *FieldLayout) AppendShape(dims []int, rows, extent int) []int {
	switch f.form {
	case padded:
		return append(append(dims, rows, extent), f.Shape[1:]...)
	case packed:
		return append(append(dims, extent), f.Shape[1:]...)
	case offsets:
		return append(dims, rows+1)
	}
	return append(append(dims, rows), f.Shape...)
}

// Fixed reports whether what the field takes in a batch depends on its rows alone. It does not
// for a ragged field, and for its Mask.
func (f *FieldLayout) Fixed() bool { return !f.form.ragged() }

// Packed reports whether the field's samples lie one behind the other without padding.
func (f *FieldLayout) Packed() bool { return f.form == packed }

// lengthOf is how many elements along the first dimension a value of so many elements has.
// It reports false for what is no sample of the ragged field.
func (f *FieldLayout) lengthOf(elements int) (n int, ok bool) {
	each := int(f.element) / f.DType.Size()
	if each == 0 {
		return 0, elements == 0
	}
	return elements / each, elements%each == 0 && elements/each <= f.Shape[0]
}

// rounded is the length of a batch's rows where the longest has n.
func (f *FieldLayout) rounded(n int) int {
	most := f.Shape[0]
	if rest := n % max(f.Ragged.Multiple, 1); rest != 0 {
		n += min(f.Ragged.Multiple-rest, most-n)
	}
	return n
}
