package loader

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	// Raised in go.mod too: without it tensor panics at start on today's Go.
	_ "go4.org/unsafe/assume-no-moving-gc"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
)

// FromTensors makes a Dataset of tensors that all have the number of samples as
// their first dimension; the rest is a sample's shape, and a tensor of one
// dimension holds scalars. names[i] is the field that ts[i] becomes. The tensors
// are borrowed for good and must not change; one that is not contiguous, because
// it was sliced or transposed, is copied once, here. Its error joins every
// mistake, each of which names the field.
func FromTensors(names []string, ts ...*tensor.Dense) (Dataset, error) {
	if len(names) != len(ts) || len(ts) == 0 {
		return nil, fmt.Errorf("loader: %d names for %d tensors, want as many, and at least one", len(names), len(ts))
	}
	d := &tensors{}
	var errs []error
	for i, t := range ts {
		if err := d.add(names[i], t); err != nil {
			errs = append(errs, fmt.Errorf("loader: tensor %q: %w", names[i], err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return d, nil
}

// tensors is a Dataset of the rows of tensors.
type tensors struct {
	samples int
	fields  []Field
	rows    [][]byte
	bytes   []int // of a row
}

// add makes the next field of t.
func (d *tensors) add(name string, t *tensor.Dense) error {
	switch {
	case t == nil:
		return errors.New("is nil")
	case !t.IsNativelyAccessible():
		return errors.New("is in memory that Go cannot read")
	case t.Dims() == 0:
		return errors.New("is a scalar, want the number of samples as its first dimension")
	case t.IsMasked():
		return errors.New("is masked, and a batch has no mask")
	}
	element, ok := elementOf(t.Dtype())
	if !ok {
		return fmt.Errorf("has elements of type %v, want bool, an integer or a float", t.Dtype())
	}
	if !rowMajor(t) {
		copied, ok := t.Materialize().(*tensor.Dense)
		if !ok || !rowMajor(copied) {
			return errors.New("is column-major, want row-major")
		}
		t = copied
	}
	shape := t.Shape()
	if len(d.fields) > 0 && shape[0] != d.samples {
		return fmt.Errorf("has %d samples, %q has %d", shape[0], d.fields[0].Name, d.samples)
	}
	d.samples = shape[0]
	d.fields = append(d.fields, Field{Name: name, DType: element, Shape: shape[1:].Clone()})
	d.rows = append(d.rows, t.Raw)
	d.bytes = append(d.bytes, len(t.Raw)/max(d.samples, 1))
	return nil
}

// rowMajor reports whether t's elements lie densely with the last dimension
// innermost. Its flags do not say so of every view; its strides do.
func rowMajor(t *tensor.Dense) bool {
	shape, strides, want := t.Shape(), t.Strides(), 1
	if len(strides) != len(shape) {
		return false
	}
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != want {
			return false
		}
		want *= shape[i]
	}
	return len(t.Raw) == want*int(t.Dtype().Size())
}

// elementOf is the element type that a Go type is in memory.
func elementOf(t tensor.Dtype) (dtype.Type, bool) {
	kind := t.Kind()
	switch { // int and uint are as wide as the machine's words
	case kind == reflect.Int && t.Size() == 8:
		kind = reflect.Int64
	case kind == reflect.Int:
		kind = reflect.Int32
	case kind == reflect.Uint && t.Size() == 8:
		kind = reflect.Uint64
	case kind == reflect.Uint:
		kind = reflect.Uint32
	}
	element, ok := elements[kind]
	return element, ok
}

var elements = map[reflect.Kind]dtype.Type{
	reflect.Bool:    dtype.Bool,
	reflect.Int8:    dtype.Int8,
	reflect.Int16:   dtype.Int16,
	reflect.Int32:   dtype.Int32,
	reflect.Int64:   dtype.Int64,
	reflect.Uint8:   dtype.Uint8,
	reflect.Uint16:  dtype.Uint16,
	reflect.Uint32:  dtype.Uint32,
	reflect.Uint64:  dtype.Uint64,
	reflect.Float32: dtype.Float32,
	reflect.Float64: dtype.Float64,
}

// Len implements Dataset.
func (d *tensors) Len() int { return d.samples }

// Fields implements Dataset.
func (d *tensors) Fields() []Field { return d.fields }

// Read implements Dataset.
func (d *tensors) Read(_ context.Context, index int, row *Row) error {
	for field, n := range d.bytes {
		copy(row.Bytes(field), d.rows[field][index*n:])
	}
	return nil
}
