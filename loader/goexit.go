package loader

import "runtime/debug"

// GoexitError is user code that ended its goroutine by runtime.Goexit, as Fatal and
// Skip of package testing do.
type GoexitError struct {
	// Stack is where it was called.
	Stack []byte
}

// Error implements error. It is one line, with the place; Stack has the way there.
func (e *GoexitError) Error() string {
	return "the goroutine was ended by runtime.Goexit" + userCode(e.Stack)
}

// exited is the error for a deferred function to tell that runtime.Goexit runs it.
func exited() error { return &GoexitError{Stack: debug.Stack()} }

// isExit reports whether an error is of exited, and not one that holds such an error.
func isExit(err error) bool {
	_, is := err.(*GoexitError)
	return is
}
