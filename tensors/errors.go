package tensors

import (
	"errors"
	"fmt"
)

// FieldError says which field cannot be a tensor, or which tensor cannot be a field.
type FieldError struct {
	Name string // the field's
	Err  error
}

func (e *FieldError) Error() string { return fmt.Sprintf("tensors: field %q %v", e.Name, e.Err) }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// Why a field of a batch cannot be a tensor, as the Err of a [FieldError].
var (
	// ErrDeviceMemory: many of a tensor's methods would read the memory from the host,
	// which ends the process. Kernels take the field's View.
	ErrDeviceMemory = errors.New("is in device memory, which a tensor's methods cannot read: take Field(name).View")
	// ErrNoElements: the field's shape or the batch is empty.
	ErrNoElements = errors.New("has no elements, which package tensor cannot express")
)
