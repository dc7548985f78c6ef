package usercode

import (
	"runtime/debug"

	"github.com/leat-go/leat/loader"
)

// Call calls code. Its panic is a *loader.PanicError. Where code ends the goroutine, ended
// gets a *loader.GoexitError, on the goroutine's way out.
func Call(code func() error, ended func(error)) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if r := recover(); r != nil {
			err = &loader.PanicError{Value: r, Stack: debug.Stack()}
		} else {
			ended(&loader.GoexitError{Stack: debug.Stack()})
		}
	}()
	err = code()
	returned = true
	return err
}
