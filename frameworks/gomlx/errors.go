package gomlx

import (
	"errors"
	"fmt"
)

// FieldError says which field of the batches cannot be a tensor.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return fmt.Sprintf("gomlx: field %q %v", e.Field, e.Err) }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Why a field cannot be a tensor, as the Err of a [FieldError].
var (
	// ErrNoField: the batches have no field of that name.
	ErrNoField = errors.New("is not in the batches")
	// ErrPacked: a field without a row for each sample can't be filled up, as Options.Mask
	// has it.
	ErrPacked = errors.New("has its samples packed, and no rows that Options.Mask could fill up")
)

var (
	// ErrDeviceMemory is for a pipeline whose batches are in device memory, which GoMLX
	// cannot view.
	ErrDeviceMemory = errors.New("gomlx: the pipeline's batches are in device memory, which GoMLX cannot view: make it by prefetch.NewHost")
	// ErrNoInputs is for a dataset without inputs, which GoMLX refuses at the first step.
	ErrNoInputs = errors.New("gomlx: no inputs, at least one is needed")
	// ErrEnd is yielded where nothing is left at all: all of loader.Options.Epochs have
	// been delivered, while the loop asks for more.
	ErrEnd = errors.New("gomlx: all epochs are delivered: let loader.Options.Epochs be as many as the loop asks for, or 0")
)
