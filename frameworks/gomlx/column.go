package gomlx

import (
	"errors"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

var types = map[dtype.Type]dtypes.DType{
	dtype.Bool:     dtypes.Bool,
	dtype.Uint8:    dtypes.Uint8,
	dtype.Int8:     dtypes.Int8,
	dtype.Uint16:   dtypes.Uint16,
	dtype.Int16:    dtypes.Int16,
	dtype.Uint32:   dtypes.Uint32,
	dtype.Int32:    dtypes.Int32,
	dtype.Uint64:   dtypes.Uint64,
	dtype.Int64:    dtypes.Int64,
	dtype.Float16:  dtypes.Float16,
	dtype.BFloat16: dtypes.BFloat16,
	dtype.Float32:  dtypes.Float32,
	dtype.Float64:  dtypes.Float64,
}

// A column is a field that becomes a tensor of each batch.
type column struct {
	name string
	// upright gives a vector a second axis of one element.
	upright bool
	ragged  bool // has another shape from batch to batch
	// full is the shape in a full batch, of a ragged field with the longest rows. Tensors
	// share it: GoMLX changes no shape.
	full shapes.Shape
}

// columns finds the fields. The error joins a FieldError for each that cannot be one.
func columns(plan prefetch.Plan, names []string, label, fill bool) ([]column, error) {
	fields := plan.Fields
	if plan.Delivered != nil {
		fields = plan.Delivered
	}
	var cs []column
	var errs []error
	for _, name := range names {
		c, err := newColumn(fields, name, plan.BatchSize, label, fill)
		if err != nil {
			errs = append(errs, &FieldError{name, err})
		}
		cs = append(cs, c)
	}
	return cs, errors.Join(errs...)
}

func newColumn(fields []loader.FieldLayout, name string, rows int, label, fill bool) (column, error) {
	for _, f := range fields {
		if f.Name != name {
			continue
		}
		if fill && packed(fields, f) {
			return column{}, ErrPacked
		}
		c := column{name: name, upright: label && len(f.Shape) == 0, ragged: f.Of >= 0 || f.Ragged != nil}
		c.full = c.shape(types[f.DType], append([]int{rows}, f.Shape...))
		return c, nil
	}
	return column{}, ErrNoField
}

// packed reports whether a field has no row for each sample: one whose samples are packed,
// or the offsets of one, which are one more than the rows.
func packed(fields []loader.FieldLayout, f loader.FieldLayout) bool {
	if f.Of < 0 {
		return false
	}
	r := fields[f.Of].Ragged
	return r != nil && r.Offsets != "" && (f.Ragged != nil || f.Name == r.Offsets)
}

// shape is the shape of the tensor over rows of these dimensions. The caller gives dims away.
func (c *column) shape(t dtypes.DType, dims []int) shapes.Shape {
	if c.upright {
		dims = append(dims, 1)
	}
	return shapes.Shape{DType: t, Dimensions: dims}
}

// of is the shape of the field's tensor in this batch.
func (c *column) of(f prefetch.Field) shapes.Shape {
	full := c.full.Dimensions
	if c.upright {
		full = full[:1]
	}
	if slices.Equal(f.Shape, full) {
		return c.full
	}
	return c.shape(c.full.DType, append(make([]int, 0, len(f.Shape)+1), f.Shape...))
}

// filled is a shape with all rows of a full batch.
func filled(of shapes.Shape, rows int) shapes.Shape {
	of = of.Clone()
	of.Dimensions[0] = rows
	return of
}
