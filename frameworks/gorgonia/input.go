package gorgonia

import (
	"fmt"
	"slices"
	"unsafe"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// types has no Float16 and no BFloat16, with which Gorgonia could not compute.
var types = map[dtype.Type]tensor.Dtype{
	dtype.Bool:    tensor.Bool,
	dtype.Uint8:   tensor.Uint8,
	dtype.Int8:    tensor.Int8,
	dtype.Uint16:  tensor.Uint16,
	dtype.Int16:   tensor.Int16,
	dtype.Uint32:  tensor.Uint32,
	dtype.Int32:   tensor.Int32,
	dtype.Uint64:  tensor.Uint64,
	dtype.Int64:   tensor.Int64,
	dtype.Float32: tensor.Float32,
	dtype.Float64: tensor.Float64,
}

// An input is a node that has a field's batch as its value.
type input struct {
	name  string
	node  *G.Node
	shape []int // the node's
	// own is the node's value outside of a body, and in one whose batch is short.
	own *tensor.Dense
}

// newInput checks that a node fits a field. rows are those of a full batch.
func newInput(fields []loader.FieldLayout, name string, node *G.Node, rows int) (*input, error) {
	i := slices.IndexFunc(fields, func(f loader.FieldLayout) bool { return f.Name == name })
	switch {
	case i < 0:
		return nil, ErrNoField
	case node == nil || !node.IsVar():
		return nil, ErrNotInput
	case differs(fields, fields[i]):
		return nil, ErrRagged
	}
	f, shape := fields[i], []int(node.Shape())
	if t, known := types[f.DType]; !known || node.Dtype() != t {
		return nil, fmt.Errorf("%w: %v, the field's is %v", ErrType, node.Dtype(), f.DType)
	}
	if len(shape) == 0 || shape[0] != rows || product(shape) != rows*product(f.Shape) || product(shape) == 0 {
		return nil, fmt.Errorf("%w: %v, a batch has %v", ErrShape, shape, append([]int{rows}, f.Shape...))
	}
	in := &input{name: name, node: node, shape: shape}
	in.own = tensor.New(tensor.Of(node.Dtype()), tensor.WithShape(shape...))
	return in, G.Let(node, in.own)
}

// differs reports whether a field's shape is another in each batch.
func differs(fields []loader.FieldLayout, f loader.FieldLayout) bool {
	return f.Ragged != nil || f.Of >= 0 && f.Name != fields[f.Of].Ragged.Length
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// enter makes a batch the node's value: where it lies, or as a copy if it is short.
func (in *input) enter(b prefetch.Batch, rows int, cache *tensors.Cache) error {
	f := b.Field(in.name)
	if b.Len() < rows {
		clear(in.own.Raw[copy(in.own.Raw, f.Bytes):])
		return nil // own is the value already
	}
	f.Shape = in.shape
	t, err := cache.Of(f)
	if err != nil {
		return err
	}
	return G.Let(in.node, t)
}

// within reports whether a value has elements in memory.
func within(v G.Value, memory []byte) bool {
	if len(memory) == 0 || v.MemSize() == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(memory)))
	return v.Uintptr() < first+uintptr(len(memory)) && first < v.Uintptr()+v.MemSize()
}

// A mask is the value of a node that says which rows count: one of the two slices.
type mask struct {
	singles []float32
	doubles []float64
}

func newMask(node *G.Node, rows int) (*mask, error) {
	if !node.IsVar() {
		return nil, ErrNotInput
	}
	shape := []int(node.Shape())
	if len(shape) == 0 || shape[0] != rows || product(shape) != rows {
		return nil, fmt.Errorf("%w: %v, want %v", ErrShape, shape, []int{rows})
	}
	value := tensor.New(tensor.Of(node.Dtype()), tensor.WithShape(shape...))
	m := &mask{}
	switch data := value.Data().(type) {
	case []float32:
		m.singles = data
	case []float64:
		m.doubles = data
	default:
		return nil, fmt.Errorf("%w: %v, want float32 or float64", ErrType, node.Dtype())
	}
	return m, G.Let(node, value)
}

// tell marks the first rows.
func (m *mask) tell(valid int) {
	mark(m.singles, valid)
	mark(m.doubles, valid)
}

func mark[T float32 | float64](rows []T, valid int) {
	for i := range rows {
		rows[i] = 0
		if i < valid {
			rows[i] = 1
		}
	}
}
