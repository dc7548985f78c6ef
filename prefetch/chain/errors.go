package chain

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
)

// OpError is an operation that can't be done: New's, or what Apply returned.
type OpError struct {
	// Index is the operation's number in the chain, from 0, and Op its name.
	Index int
	Op    string
	// Field is the field as it comes in. If there is none of that name, only the Name is
	// set.
	Field loader.Field
	// Err is one mistake: an *OptionError, or what the user's Output or Apply returned.
	Err error
}

// Error implements error.
func (e *OpError) Error() string {
	field := e.Field.Name
	if e.Field.DType.Valid() {
		field = e.Field.String()
	}
	op := e.Op
	if op == "" {
		op = "an Op without a name"
	}
	return fmt.Sprintf("chain: operation %d, %s of %s: %v", e.Index, op, field, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// OptionError is a value that an operation can't take: a field of Op or of the operation's
// options, or the DType or Shape of the field that it gets. The OpError around it says
// which operation. The type is package device's.
type OptionError = device.OptionError

// mistakes are the errors that err joins, without what package kernels says around them.
func mistakes(err error) (all []error) {
	switch e := err.(type) {
	case *kernels.Error:
		return mistakes(e.Err)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, mistakes(err)...)
		}
		return all
	}
	return []error{err}
}
