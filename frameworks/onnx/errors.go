package onnx

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/prefetch"
)

// ValueError says which input or output of a model does not fit.
type ValueError struct {
	// Name is the input's or the output's.
	Name string
	// Output tells an output from an input.
	Output bool
	Err    error
}

func (e *ValueError) Error() string {
	if e.Output {
		return fmt.Sprintf("onnx: output %q: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("onnx: input %q: %v", e.Name, e.Err)
}

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }

// Why an input or an output does not fit, as the Err of a [ValueError].
var (
	// ErrNoField: the batches have no field for an input.
	ErrNoField = errors.New("the batches have no such field; Options.Fields may name another")
	// ErrNoValue: Options names an input or an output that the model does not have.
	ErrNoValue = errors.New("the model has none of that name")
	// ErrType: the field's element type is another than the input's, or Leat has none for an
	// output's, or it is no tensor.
	ErrType = errors.New("the element type is another")
	// ErrShape: the shape is another.
	ErrShape = errors.New("the shape is another")
	// ErrPacked: a field whose samples are packed has no rows, and can only be the input of
	// a model that takes any number of them.
	ErrPacked = errors.New("the field has its samples packed, and the model wants rows")
	// ErrUnknownShape: the model does not tell the shape of an output's row, which
	// Options.Outputs may.
	ErrUnknownShape = errors.New("the model does not tell the shape of a row: give it by Options.Outputs")
)

var (
	// ErrNotInitialized: the binding's InitializeEnvironment comes first.
	ErrNotInitialized = errors.New("onnx: ONNX Runtime is not initialized: call InitializeEnvironment of the binding first")
	// ErrDeviceMemory is for a pipeline whose batches are in device memory.
	ErrDeviceMemory = errors.New("onnx: the pipeline's batches are in device memory, of which the binding can't make tensors: make it by prefetch.NewHost")
	// ErrClosed is returned by Run once the Model is closed.
	ErrClosed = errors.New("onnx: the model is closed")
)

// RunError is a failure of ONNX Runtime with a batch.
type RunError struct {
	Position prefetch.Position
	Err      error
}

func (e *RunError) Error() string {
	return fmt.Sprintf("onnx: epoch %d, batch %d: %v", e.Position.Epoch, e.Position.Batch, e.Err)
}

// Unwrap returns Err.
func (e *RunError) Unwrap() error { return e.Err }
