package onnx

import (
	"fmt"
	"slices"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

var types = map[dtype.Type]ort.TensorElementDataType{
	dtype.Bool:     ort.TensorElementDataTypeBool,
	dtype.Uint8:    ort.TensorElementDataTypeUint8,
	dtype.Int8:     ort.TensorElementDataTypeInt8,
	dtype.Uint16:   ort.TensorElementDataTypeUint16,
	dtype.Int16:    ort.TensorElementDataTypeInt16,
	dtype.Uint32:   ort.TensorElementDataTypeUint32,
	dtype.Int32:    ort.TensorElementDataTypeInt32,
	dtype.Uint64:   ort.TensorElementDataTypeUint64,
	dtype.Int64:    ort.TensorElementDataTypeInt64,
	dtype.Float16:  ort.TensorElementDataTypeFloat16,
	dtype.BFloat16: ort.TensorElementDataTypeBFloat16,
	dtype.Float32:  ort.TensorElementDataTypeFloat,
	dtype.Float64:  ort.TensorElementDataTypeDouble,
}

// An input is one of the model's, and the field that it is.
type input struct {
	name  string // the model's
	field string
	dtype dtype.Type
	// full is set where the model takes full batches only.
	full bool
}

// newInput finds the field of an input. rows are those of a full batch.
func newInput(info ort.InputOutputInfo, fields []loader.FieldLayout, name string, rows int) (input, error) {
	i := slices.IndexFunc(fields, func(f loader.FieldLayout) bool { return f.Name == name })
	if i < 0 {
		return input{}, fmt.Errorf("%w: %q", ErrNoField, name)
	}
	f := fields[i]
	if info.OrtValueType != ort.ONNXTypeTensor || info.DataType != types[f.DType] {
		return input{}, fmt.Errorf("%w: the model wants %v, the field %q has %v", ErrType, info.DataType, name, f.DType)
	}
	in := input{name: info.Name, field: name, dtype: f.DType, full: len(info.Dimensions) > 0 && info.Dimensions[0] >= 0}
	shape := append([]int{rows}, f.Shape...)
	if f.Of >= 0 && fields[f.Of].Ragged.Offsets != "" && f.Name != fields[f.Of].Ragged.Length {
		if in.full {
			return input{}, ErrPacked
		}
		shape = slices.Delete(shape, 0, min(1, len(shape)-1)) // the samples' first dimensions are joined
	}
	if !fits(info.Dimensions, shape) {
		return input{}, fmt.Errorf("%w: the model wants %v, a batch of the field %q has %v", ErrShape, info.Dimensions, name, shape)
	}
	return in, nil
}

// fits compares a model's dimensions, of which those below 0 are any, with a shape.
func fits(dims ort.Shape, shape []int) bool {
	return slices.EqualFunc(dims, shape, func(d int64, n int) bool { return d < 0 || d == int64(n) })
}

// rows is the field's memory in a batch, or a copy that is filled up with zeros if the batch
// is short and the model takes full ones only.
func (in *input) rows(b prefetch.Batch, full int) (shape []int, memory []byte) {
	f := b.Field(in.field)
	if !in.full || b.Len() == full {
		return f.Shape, f.Bytes
	}
	memory = make([]byte, len(f.Bytes)/b.Len()*full)
	copy(memory, f.Bytes)
	return append([]int{full}, f.Shape[1:]...), memory
}

// newOutput is an output as a field of results.
func newOutput(info ort.InputOutputInfo, rows int) (loader.Field, error) {
	f := loader.Field{Name: info.Name}
	for t, of := range types {
		if of == info.DataType {
			f.DType = t
		}
	}
	if info.OrtValueType != ort.ONNXTypeTensor || f.DType == dtype.Invalid {
		return f, fmt.Errorf("%w: %v", ErrType, info.DataType)
	}
	if len(info.Dimensions) == 0 || info.Dimensions[0] >= 0 && info.Dimensions[0] != int64(rows) {
		return f, fmt.Errorf("%w: %v, want the batch's rows, %d, first", ErrShape, info.Dimensions, rows)
	}
	for _, d := range info.Dimensions[1:] {
		if d < 0 {
			return f, ErrUnknownShape
		}
		f.Shape = append(f.Shape, int(d))
	}
	return f, nil
}

// checkOutput reports what is wrong with an output as the caller describes it.
func checkOutput(infos []ort.InputOutputInfo, f loader.Field, rows int) error {
	i := slices.IndexFunc(infos, func(info ort.InputOutputInfo) bool { return info.Name == f.Name })
	if i < 0 {
		return ErrNoValue
	}
	info := infos[i]
	if info.OrtValueType != ort.ONNXTypeTensor || info.DataType != types[f.DType] {
		return fmt.Errorf("%w: the model has %v, Options.Outputs %v", ErrType, info.DataType, f.DType)
	}
	if shape := append([]int{rows}, f.Shape...); !fits(info.Dimensions, shape) {
		return fmt.Errorf("%w: the model has %v, Options.Outputs %v", ErrShape, info.Dimensions, shape)
	}
	return nil
}
