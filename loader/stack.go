package loader

import (
	"fmt"
	"io"
)

// Format implements fmt.Formatter: %+v adds the stacks of what panicked or hangs.
func (e *Error) Format(s fmt.State, verb rune) { format(s, verb, e) }

// Format implements fmt.Formatter: %+v adds the stack.
func (e *PanicError) Format(s fmt.State, verb rune) { format(s, verb, e) }

// Format implements fmt.Formatter: %+v adds the stack.
func (e *StallError) Format(s fmt.State, verb rune) { format(s, verb, e) }

// Format implements fmt.Formatter: %+v adds the stack.
func (e *StuckError) Format(s fmt.State, verb rune) { format(s, verb, e) }

func format(s fmt.State, verb rune, err error) {
	fmt.Fprintf(s, fmt.FormatString(s, verb), err.Error())
	if verb == 'v' && s.Flag('+') {
		writeStacks(s, err)
	}
}

// writeStacks writes the stacks that are in err, and in what it wraps.
func writeStacks(w io.Writer, err error) {
	var stack []byte
	switch e := err.(type) {
	case *Error:
		writeStacks(w, e.Err) // Unwrap may hide it
		return
	case foreign:
		writeStacks(w, e.err)
		return
	case *PanicError:
		stack = e.Stack
	case *StallError:
		stack = e.Stack
	case *StuckError:
		stack = e.Stack
	case *TimeoutError:
		stack = e.Stack
	}
	if len(stack) > 0 {
		fmt.Fprintf(w, "\n\n%s", stack)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		writeStacks(w, e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			writeStacks(w, err)
		}
	}
}
