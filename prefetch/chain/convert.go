package chain

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Convert changes the element type to another, among uint8, float16, bfloat16 and
// float32: it is kernels.Convert.
func Convert(field string, to dtype.Type) Op {
	const types = "uint8, float16, bfloat16 or float32"
	return Op{Name: "Convert", Field: field,
		Output: func(f loader.Field) (loader.Field, error) {
			switch {
			case !kernels.Convertible(f.DType):
				return f, &OptionError{Option: "DType", Value: f.DType, Want: types}
			case !kernels.Convertible(to):
				return f, &OptionError{Option: "to", Value: to, Want: types}
			}
			f.DType = to
			return f, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			return kernels.Convert(s, out.View, in.View, to, in.DType)
		},
	}
}

// OneHot makes rows of float32 [classes] of labels, which are uint8, int32 or int64: it is
// kernels.OneHot. A label that is none of 0 to classes-1 becomes a row of zeros.
func OneHot(field string, classes int) Op {
	return Op{Name: "OneHot", Field: field,
		Output: func(f loader.Field) (loader.Field, error) {
			p := kernels.OneHotParams{Classes: classes, Labels: f.DType}
			if err := p.Validate(); err != nil {
				return f, err
			}
			return loader.Field{DType: dtype.Float32, Shape: append(f.Shape, classes), Ragged: f.Ragged}, nil
		},
		Apply: func(s *device.Stream, out, in prefetch.Field, _ prefetch.Fields) error {
			return kernels.OneHot(s, out.View, in.View, kernels.OneHotParams{Classes: classes, Labels: in.DType})
		},
	}
}
