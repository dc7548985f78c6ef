package chain

import (
	"fmt"

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
	// Err is what is wrong with it: an *OptionError, an error of package kernels, or the
	// user's own.
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

// OptionError is a value that an operation can't take. The OpError around it says which
// operation.
type OptionError struct {
	// Option is a field of Op or of the operation's options, or Field, DType or Shape:
	// what comes in.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
}

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Option, e.Value, e.Want)
}
