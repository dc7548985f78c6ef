package tensors

import (
	"reflect"

	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
)

// element is an element type in both packages' words.
type element struct {
	leat    dtype.Type
	tensor  tensor.Dtype
	backing func(mem []byte) any // mem as a slice of the Go type
}

// elements has the types of its own of package tensor first: of two lines with one
// tensor.Dtype, the first says what a tensor's elements are in a batch.
var elements = []element{
	{dtype.Bool, tensor.Bool, as[bool]},
	{dtype.Uint8, tensor.Uint8, as[uint8]},
	{dtype.Int8, tensor.Int8, as[int8]},
	{dtype.Uint16, tensor.Uint16, as[uint16]},
	{dtype.Int16, tensor.Int16, as[int16]},
	{dtype.Uint32, tensor.Uint32, as[uint32]},
	{dtype.Int32, tensor.Int32, as[int32]},
	{dtype.Uint64, tensor.Uint64, as[uint64]},
	{dtype.Int64, tensor.Int64, as[int64]},
	{dtype.Float32, tensor.Float32, as[float32]},
	{dtype.Float64, tensor.Float64, as[float64]},

	{dtype.Float16, tensor.Uint16, as[uint16]},
	{dtype.BFloat16, tensor.Uint16, as[uint16]},
}

func as[T dtype.Element](mem []byte) any { return dtype.As[T](mem) }

// elementOf finds the line of a batch's element type.
func elementOf(t dtype.Type) (element, bool) {
	for _, e := range elements {
		if e.leat == t {
			return e, true
		}
	}
	return element{}, false
}

// elementOfTensor finds the line of a tensor's element type. Named types go by what
// they are in memory, and int and uint are as wide as the machine's words.
func elementOfTensor(t tensor.Dtype) (element, bool) {
	kind := t.Kind()
	switch wide := t.Size() == 8; {
	case kind == reflect.Int && wide:
		kind = reflect.Int64
	case kind == reflect.Int:
		kind = reflect.Int32
	case kind == reflect.Uint && wide:
		kind = reflect.Uint64
	case kind == reflect.Uint:
		kind = reflect.Uint32
	}
	for _, e := range elements {
		if e.tensor.Kind() == kind {
			return e, true
		}
	}
	return element{}, false
}
