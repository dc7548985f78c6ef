package tensors

import (
	"context"
	"errors"
	"fmt"

	"gorgonia.org/tensor"

	"github.com/leat-go/leat/loader"
)

// Dataset makes a loader.Dataset of tensors that all have the number of samples as
// their first dimension; the rest is a sample's shape, and a tensor of one
// dimension holds scalars. names[i] is the field that ts[i] becomes. The tensors
// are borrowed for good and must not change; one that is not contiguous, because
// it was sliced or transposed, is copied once, here. Its error joins every
// mistake, each of which names the field.
func Dataset(names []string, ts ...*tensor.Dense) (loader.Dataset, error) {
	if len(names) != len(ts) || len(ts) == 0 {
		return nil, fmt.Errorf("tensors: %d names for %d tensors, want as many, and at least one", len(names), len(ts))
	}
	d := &dataset{}
	var errs []error
	for i, t := range ts {
		if err := d.add(names[i], t); err != nil {
			errs = append(errs, &FieldError{Name: names[i], Err: err})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return d, nil
}

// dataset is the rows of tensors.
type dataset struct {
	samples int
	fields  []loader.Field
	rows    [][]byte
	bytes   []int // of a row
}

// add makes the next field of t.
func (d *dataset) add(name string, t *tensor.Dense) error {
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
	e, ok := elementOfTensor(t.Dtype())
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
	d.fields = append(d.fields, loader.Field{Name: name, DType: e.leat, Shape: shape[1:].Clone()})
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

// Len implements loader.Dataset.
func (d *dataset) Len() int { return d.samples }

// Fields implements loader.Dataset.
func (d *dataset) Fields() []loader.Field { return d.fields }

// Read implements loader.Dataset.
func (d *dataset) Read(_ context.Context, index int, row *loader.Row) error {
	for i, n := range d.bytes {
		copy(row.Bytes(d.fields[i].Name), d.rows[i][index*n:])
	}
	return nil
}
