package loader

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
