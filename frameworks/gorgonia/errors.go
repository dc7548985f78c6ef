package gorgonia

import (
	"errors"
	"fmt"
)

// NodeError says which field cannot be the value of its node.
type NodeError struct {
	// Field is the name of the field, "" for the mask.
	Field string
	Err   error
}

func (e *NodeError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("gorgonia: the mask: %v", e.Err)
	}
	return fmt.Sprintf("gorgonia: field %q: %v", e.Field, e.Err)
}

// Unwrap returns Err.
func (e *NodeError) Unwrap() error { return e.Err }

// Why a field cannot be the value of a node, as the Err of a [NodeError].
var (
	// ErrNoField: the batches have no field of that name.
	ErrNoField = errors.New("it is not in the batches")
	// ErrNotInput: there is no node, or one that the graph computes.
	ErrNotInput = errors.New("its node is no input of a graph")
	// ErrOtherGraph: the node is one of another graph than those before it.
	ErrOtherGraph = errors.New("its node is in another graph")
	// ErrRagged: a field whose shape differs from batch to batch can't be a node's value.
	ErrRagged = errors.New("its batches differ in shape, and a graph's do not")
	// ErrType: the node's type is another, or gorgonia has none for the field's.
	ErrType = errors.New("its node has another type")
	// ErrShape: the node has other rows than a batch, or another number of elements.
	ErrShape = errors.New("its node has another shape")
)

var (
	// ErrDeviceMemory is for a pipeline whose batches are in device memory.
	ErrDeviceMemory = errors.New("gorgonia: the pipeline's batches are in device memory: make it by prefetch.NewHost")
	// ErrNoInputs is for a Feed without inputs.
	ErrNoInputs = errors.New("gorgonia: no inputs, at least one is needed")
	// ErrShort is for a batch that is short or padded, where no mask tells the graph.
	ErrShort = errors.New("gorgonia: not all rows of the batch are samples, and the graph has no mask: give New one, or have the loader drop such a batch by loader.Drop")
)
