package chain

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// NormalizeOptions says what Normalize does. The zero value takes 0…255 to 0…1 in
// float32.
type NormalizeOptions struct {
	// Mean and Std have a value for each channel, or one for all, in units of the full
	// range: a byte v of channel c becomes (v/255 - Mean[c]) / Std[c]. A nil Mean is all
	// 0, a nil Std all 1.
	Mean, Std []float32
	// Layout says where the channels are, before and after. 0 is kernels.Interleaved,
	// [H, W, C], as images are decoded; kernels.ToPlanar makes [C, H, W] of them.
	Layout kernels.Layout
	// Out is the element type of the result: float32 (also if left out), float16 or
	// bfloat16.
	Out dtype.Type
}

// Normalize makes floating point of uint8 images: it is kernels.Normalize.
func Normalize(field string, o NormalizeOptions) Op {
	o.Mean, o.Std = slices.Clone(o.Mean), slices.Clone(o.Std)
	if o.Out == dtype.Invalid {
		o.Out = dtype.Float32
	}
	return Op{Name: "Normalize", Field: field,
		Output: func(f loader.Field) (loader.Field, error) {
			if f.DType != dtype.Uint8 {
				return f, &OptionError{Option: "DType", Value: f.DType, Want: "uint8"}
			}
			if err := o.axes(f); err != nil {
				return f, err
			}
			p, err := o.of(f.Shape)
			if err != nil {
				return f, err
			}
			if err := p.Validate(); err != nil {
				return f, err
			}
			if o.Layout == kernels.ToPlanar {
				f.Shape = []int{f.Shape[2], f.Shape[0], f.Shape[1]}
			}
			f.DType = o.Out
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			p, err := o.of(in.Shape[1:])
			if err != nil {
				return err
			}
			return kernels.Normalize(s, out.View, in.View, p)
		},
	}
}

// axes refuses a ragged field whose first dimension the layout takes for one of an image,
// or for its channels.
func (o *NormalizeOptions) axes(f loader.Field) error {
	if o.Layout == kernels.Interleaved && (len(f.Shape) > 1 || len(o.Mean) <= 1 && len(o.Std) <= 1) {
		return nil
	}
	return ofOneSize(f, fmt.Sprintf("the Layout %v has no place for a length", o.Layout))
}

// of is what o says of images of that shape, for the kernel.
func (o *NormalizeOptions) of(shape []int) (kernels.NormalizeParams, error) {
	p := kernels.NormalizeParams{Mean: o.Mean, Std: o.Std, Out: o.Out, Layout: o.Layout}
	channels := 0
	switch {
	case o.Layout != kernels.Interleaved && len(shape) != 3:
		return p, &OptionError{Option: "Shape", Value: shape, Want: fmt.Sprintf("three axes for the Layout %v", o.Layout)}
	case o.Layout == kernels.Planar:
		channels = shape[0]
	case o.Layout == kernels.Interleaved && len(o.Mean) <= 1 && len(o.Std) <= 1:
		return p, nil // flat data: all elements are treated alike, and no axis need be that of channels
	case len(shape) == 0:
		return p, &OptionError{Option: "Shape", Value: shape, Want: "one axis or more, the last for channels"}
	default:
		channels = shape[len(shape)-1]
	}
	var errs []error
	for _, list := range [...]struct {
		name   string
		values []float32
	}{{"Mean", o.Mean}, {"Std", o.Std}} {
		if n := len(list.values); n > 1 && n != channels {
			errs = append(errs, &OptionError{Option: list.name, Value: list.values, Want: fmt.Sprintf("1 value, or one for each of the %d channels of the shape %v", channels, shape)})
		}
	}
	// An image without pixels or channels has nothing to be normalised.
	p.Channels, p.Pixels = max(1, channels), 1
	for _, dim := range shape {
		p.Pixels *= int64(dim)
	}
	p.Pixels = max(1, p.Pixels/int64(p.Channels))
	return p, errors.Join(errs...)
}
