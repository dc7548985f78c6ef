package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MarkError is a mark that can't be gone on from: it is none, or one of another stream.
type MarkError struct {
	// Operator is the function of this package whose part of the mark it is.
	Operator string
	// Err says what is wrong.
	Err error
}

// Error implements error.
func (e *MarkError) Error() string { return fmt.Sprintf("stream: mark of %s: %v", e.Operator, e.Err) }

// Unwrap returns the cause.
func (e *MarkError) Unwrap() error { return e.Err }

// errOtherData is for a mark behind the end of what it is said to be of.
var errOtherData = errors.New("the data ends before the place that was marked")

// parse reads a mark of an operator into to, strictly. Marks come from files: to must hold
// nothing whose size is a number of the mark's.
func parse(operator string, mark []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(mark))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("something stands behind it")
		}
	}
	if err != nil {
		return &MarkError{Operator: operator, Err: err}
	}
	return nil
}

// outside is the error for a number of a mark that it can't have.
func outside(operator, key string, value, least, most int64) error {
	if value >= least && value <= most {
		return nil
	}
	return &MarkError{Operator: operator, Err: fmt.Errorf("%s is %d, want %d to %d", key, value, least, most)}
}

// given is a mark, nil for the beginning.
func given(mark []byte) []byte {
	if len(mark) == 0 || string(mark) == "null" {
		return nil
	}
	return mark
}

// appendGiven appends a mark that may be the beginning's.
func appendGiven(dst, mark []byte) []byte {
	if mark == nil {
		return append(dst, "null"...)
	}
	return append(dst, mark...)
}

// isMark reports whether b is a JSON value and not null.
func isMark(b []byte) bool {
	return json.Valid(b) && string(bytes.TrimSpace(b)) != "null"
}

// raw is the mark within a mark, "null" for the beginning.
type raw = json.RawMessage

// inner is the mark within an operator's, nil for the beginning.
func inner(operator string, at raw) ([]byte, error) {
	if at == nil {
		return nil, &MarkError{Operator: operator, Err: errors.New("it holds no mark of the stream below")}
	}
	return given(at), nil
}
