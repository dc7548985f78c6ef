package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// ErrChanged is for a file that is not any more what it was when it was opened.
var ErrChanged = errors.New("the file has changed since it was opened")

// What was tried, as Error.Op names it.
const (
	opOpen  = "open"
	opStat  = "stat"
	opRead  = "read"
	opClose = "close"
)

// Error is a failure and where it happened. errors.Is finds the cause in it, such as
// fs.ErrNotExist.
type Error struct {
	// Source is the name of the Source.
	Source string
	// Op is "open", "stat", "read" or "close".
	Op string
	// Offset is where the read failed: the bytes before it were read. It is -1 where
	// nothing was read.
	Offset int64
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("source: %s %s: %v", e.Op, e.Source, e.Err)
	}
	return fmt.Sprintf("source: %s %s at byte %d: %v", e.Op, e.Source, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// failed is an *Error without an offset. It takes off what package os says a second time.
func failed(op, name string, err error) error {
	if inner, ok := err.(*fs.PathError); ok {
		err = inner.Err
	}
	return &Error{Source: name, Op: op, Offset: -1, Err: err}
}

// begun is an *Error if ctx is done already.
func begun(ctx context.Context, op, name string) error {
	if ctx.Err() == nil {
		return nil
	}
	return failed(op, name, context.Cause(ctx))
}

// irregular is an error for what has no contents of a known size, or nil.
func irregular(mode fs.FileMode) error {
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return errors.New("it is a directory, want a file")
	}
	return fmt.Errorf("its mode is %v, want a regular file", mode)
}
