package stream

import (
	"errors"
	"io"
	"runtime/debug"

	"github.com/leat-go/leat/loader"
)

// Error is the failure of a value, with the place that it comes from.
type Error struct {
	// From is not the zero value.
	From loader.Origin
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.From.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Origin implements loader.Located.
func (e *Error) Origin() loader.Origin { return e.From }

// located is err with an origin, if that is known.
func located(err error, from loader.Origin) error {
	if from == (loader.Origin{}) {
		return err
	}
	return &Error{From: from, Err: err}
}

// recovered makes a panic of a user's function an error. It is deferred.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = panicked(p)
	}
}

// panicked is the error of a panic that is under way.
func panicked(value any) error { return &loader.PanicError{Value: value, Stack: debug.Stack()} }

// call is what a user's function without arguments returns.
func call[T any](f func() T) (value T, err error) {
	defer recovered(&err)
	return f(), nil
}

// leavesOut reports whether a function's error says that its value is to be left out.
func leavesOut(err error) bool { return errors.Is(err, loader.Skip) }

// closing closes what was opened before the failure err, and joins both errors.
func closing(opened io.Closer, err error) error { return errors.Join(err, opened.Close()) }

// orClose does what is left to do until a reader can be given away. If that fails, or ends in a
// panic, what was opened is closed.
func orClose(opened io.Closer, do func() error) (err error) {
	done := false
	defer func() {
		if !done {
			err = closing(opened, err)
		}
	}()
	err = do()
	done = err == nil
	return err
}
