// Package convert writes numbers of one type to fields of another, if they keep their value.
package convert

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Error is a value that a field can't hold.
type Error struct {
	// Want is what should be there, Got what is.
	Want, Got string
}

// Error implements error.
func (e *Error) Error() string { return "want " + e.Want + ", got " + e.Got }

// Write writes data, elements of a type, to the field of the row. Whole numbers must keep their
// value and so must floating-point numbers that go to whole ones; a floating-point number that
// goes to a smaller type is rounded, but doesn't become infinite. A ragged field is told its
// length. The error is an *Error, or a *loader.SizeError or *loader.FieldError.
func Write(row *loader.Row, field string, from dtype.Type, data []byte) error {
	i, ok := row.Layout().Lookup(field)
	if !ok {
		return &loader.FieldError{Name: field}
	}
	f := &row.Layout().Fields()[i]
	elements := len(data) / from.Size()
	if err := fits(row, f, elements); err != nil {
		return err
	}
	to := row.Bytes(field)
	if f.DType == from {
		copy(to, data)
		return nil
	}
	if half(from) || half(f.DType) {
		return &Error{Want: f.DType.String() + " values", Got: from.String()}
	}
	bad := -1
	if to = to[:elements*f.DType.Size()]; isAligned(data, from) {
		bad = toType(f.DType, to, from, data)
	} else {
		// A piece at a time, by memory that is aligned.
		room := rooms.Get().(*[step]uint64)
		defer rooms.Put(room)
		for at := 0; at < elements && bad < 0; at += step {
			n := min(step, elements-at)
			piece := dtype.Bytes(room[:])[:n*from.Size()]
			copy(piece, data[at*from.Size():])
			if bad = toType(f.DType, to[at*f.DType.Size():(at+n)*f.DType.Size()], from, piece); bad >= 0 {
				bad += at
			}
		}
	}
	if bad >= 0 {
		return &Error{Want: "values that " + f.DType.String() + " holds", Got: fmt.Sprintf("%s as element %d", show(from, data, bad), bad)}
	}
	return nil
}

const step = 64

var rooms = sync.Pool{New: func() any { return new([step]uint64) }}

func isAligned(data []byte, t dtype.Type) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(t.Size()) == 0
}

// toType converts all of data, which is aligned, and returns the first that can't be converted, or
// -1.
func toType(t dtype.Type, to []byte, from dtype.Type, data []byte) (bad int) {
	switch from {
	case dtype.Bool, dtype.Uint8:
		bad = toField(t, to, dtype.As[uint8](data))
	case dtype.Int8:
		bad = toField(t, to, dtype.As[int8](data))
	case dtype.Uint16:
		bad = toField(t, to, dtype.As[uint16](data))
	case dtype.Int16:
		bad = toField(t, to, dtype.As[int16](data))
	case dtype.Uint32:
		bad = toField(t, to, dtype.As[uint32](data))
	case dtype.Int32:
		bad = toField(t, to, dtype.As[int32](data))
	case dtype.Uint64:
		bad = toField(t, to, dtype.As[uint64](data))
	case dtype.Int64:
		bad = toField(t, to, dtype.As[int64](data))
	case dtype.Float32:
		bad = toField(t, to, dtype.As[float32](data))
	case dtype.Float64:
		bad = toField(t, to, dtype.As[float64](data))
	}
	return bad
}

func half(t dtype.Type) bool { return t == dtype.Float16 || t == dtype.BFloat16 }

// fits checks the number of elements, and tells a ragged field its length.
func fits(row *loader.Row, f *loader.FieldLayout, elements int) error {
	most := int(f.RowBytes) / f.DType.Size()
	if f.Ragged == nil {
		if elements != most {
			return &loader.SizeError{Field: f.Field, Got: elements, Want: most}
		}
		return nil
	}
	each := 1
	for _, n := range f.Shape[1:] {
		each *= n
	}
	if elements > most || each == 0 || elements%each != 0 {
		return &loader.SizeError{Field: f.Field, Got: elements, Want: most}
	}
	return row.SetLen(f.Name, elements/each)
}

type number interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

// toField converts all of from, and returns the first that can't be converted, or -1.
func toField[F number](t dtype.Type, to []byte, from []F) int {
	switch t {
	case dtype.Bool:
		if i := slices.IndexFunc(from, func(x F) bool { return x != 0 && x != 1 }); i >= 0 {
			return i
		}
		return each(dtype.As[uint8](to), from)
	case dtype.Uint8:
		return each(dtype.As[uint8](to), from)
	case dtype.Int8:
		return each(dtype.As[int8](to), from)
	case dtype.Uint16:
		return each(dtype.As[uint16](to), from)
	case dtype.Int16:
		return each(dtype.As[int16](to), from)
	case dtype.Uint32:
		return each(dtype.As[uint32](to), from)
	case dtype.Int32:
		return each(dtype.As[int32](to), from)
	case dtype.Uint64:
		return each(dtype.As[uint64](to), from)
	case dtype.Int64:
		return each(dtype.As[int64](to), from)
	case dtype.Float32:
		return each(dtype.As[float32](to), from)
	}
	return each(dtype.As[float64](to), from)
}

func each[T, F number](to []T, from []F) int {
	for i, x := range from {
		y := T(x)
		if !same(x, y) {
			return i
		}
		to[i] = y
	}
	return -1
}

// same reports whether y is x in another type. Converting what a type can't hold gives
// different values on different processors, some of which convert back.
func same[F, T number](x F, y T) bool {
	fromFloat, toFloat := F(1)/2 != 0, T(1)/2 != 0
	switch {
	case fromFloat && toFloat:
		return !math.IsInf(float64(y), 0) || math.IsInf(float64(x), 0)
	case fromFloat:
		f := float64(x)
		return f >= -1<<63 && f < 1<<64 && F(y) == x && (f < 0) == (y < 0) && (f < 1<<63 || uint64(y) >= 1<<63)
	case toFloat:
		f := float64(y)
		return f < 1<<64 && F(y) == x && (f < 1<<63 || uint64(x) >= 1<<63)
	}
	return F(y) == x && (x < 0) == (y < 0)
}

// show is an element for people.
func show(t dtype.Type, data []byte, i int) string {
	var room [1]uint64
	one := dtype.Bytes(room[:])[:t.Size()]
	copy(one, data[i*t.Size():])
	data = one
	switch t {
	case dtype.Int8:
		return fmt.Sprint(dtype.As[int8](data)[0])
	case dtype.Uint16:
		return fmt.Sprint(dtype.As[uint16](data)[0])
	case dtype.Int16:
		return fmt.Sprint(dtype.As[int16](data)[0])
	case dtype.Uint32:
		return fmt.Sprint(dtype.As[uint32](data)[0])
	case dtype.Int32:
		return fmt.Sprint(dtype.As[int32](data)[0])
	case dtype.Uint64:
		return fmt.Sprint(dtype.As[uint64](data)[0])
	case dtype.Int64:
		return fmt.Sprint(dtype.As[int64](data)[0])
	case dtype.Float32:
		return fmt.Sprint(dtype.As[float32](data)[0])
	case dtype.Float64:
		return fmt.Sprint(dtype.As[float64](data)[0])
	}
	return fmt.Sprint(data[0])
}
