package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
)

// JSON is the values of lines of JSON, one a line, as encoding/json reads them into a T. Blank
// lines are left out. A line that is none is the failure of that record only, a *JSONError.
func JSON[T any](lines Stream[[]byte]) Stream[T] {
	return Map(lines, func(_ context.Context, line []byte) (value T, err error) {
		if len(bytes.TrimSpace(line)) == 0 {
			return value, loader.Skip
		}
		if err = json.Unmarshal(line, &value); err != nil {
			err = broken(line, err)
		}
		return value, err
	})
}

// JSONError is a line that is no JSON, or no value of the type that was asked for. The *Error
// around it has the file and the line.
type JSONError struct {
	// Byte is the byte of the line at which it goes wrong, from 1; 0 if that is not known.
	Byte int
	// Near is the line from a little before that byte to a little behind it.
	Near string
	// Err is the error of encoding/json.
	Err error
}

// Error implements error.
func (e *JSONError) Error() string {
	if e.Byte == 0 {
		return fmt.Sprintf("%v, in %#q", e.Err, e.Near)
	}
	return fmt.Sprintf("%v, at byte %d, near %#q", e.Err, e.Byte, e.Near)
}

// Unwrap returns Err.
func (e *JSONError) Unwrap() error { return e.Err }

// excerpt is how many bytes of a line are shown on each side of the place.
const excerpt = 24

// broken is the error of a line that encoding/json can't read. A type's own UnmarshalJSON may
// return one that says no place, or a place in a part of the line.
func broken(line []byte, err error) error {
	e := &JSONError{Err: err}
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		e.Byte = int(syntax.Offset)
	case errors.As(err, &mistyped):
		e.Byte = int(mistyped.Offset)
	}
	e.Byte = min(max(e.Byte, 0), len(line))
	e.Near = string(line[max(0, e.Byte-excerpt):min(len(line), e.Byte+excerpt)])
	return e
}
