package loader

import "fmt"

// GoexitError is user code that ended its goroutine by runtime.Goexit, as Fatal and
// Skip of package testing do.
type GoexitError struct {
	// Stack is where it was called.
	Stack []byte
}

// Error implements error.
func (e *GoexitError) Error() string {
	return fmt.Sprintf("the goroutine was ended by runtime.Goexit\n\n%s", e.Stack)
}
