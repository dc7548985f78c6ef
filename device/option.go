package device

import (
	"errors"
	"fmt"
)

// OptionError is a value that an option or a parameter can't have. errors.As finds it
// in the *Error of the call, and errors.Is finds ErrInvalid in it. A call reports all
// mistakes at once, each an OptionError.
type OptionError struct {
	// Option is the field of an Options structure, "PinnedBytes" or "Model.H2D.Latency",
	// or the parameter of a function.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
}

// Error implements error.
func (e *OptionError) Error() string {
	if text, ok := e.Value.(string); ok {
		return fmt.Sprintf("%s is %q, want %s", e.Option, text, e.Want)
	}
	return fmt.Sprintf("%s is %v, want %s", e.Option, e.Value, e.Want)
}

// Is reports whether target is ErrInvalid.
func (e *OptionError) Is(target error) bool { return target == ErrInvalid }

// refuse is the error of op for mistakes, of which some may be nil; nil if all are.
func (d *Device) refuse(op string, mistakes ...*OptionError) error {
	var errs []error
	for _, m := range mistakes {
		if m != nil {
			errs = append(errs, m)
		}
	}
	if errs == nil {
		return nil
	}
	return &Error{Op: op, Device: d.name, Err: errors.Join(errs...)}
}

// notNegative is the mistake of a negative number of bytes.
func notNegative(bytes int64) *OptionError {
	if bytes >= 0 {
		return nil
	}
	return &OptionError{Option: "bytes", Value: bytes, Want: "0 or more"}
}
