package source

import (
	"fmt"
	"strings"
)

// FormatError is data that is not what its format prescribes: not of that format, damaged,
// cut off, or larger than is allowed. The packages that read formats return it.
type FormatError struct {
	// Format is the name of the package: tar, tfrecord.
	Format string
	// File is the name of the Source.
	File string
	// Offset is the byte of the file at which it goes wrong, in compressed files of what they
	// hold; -1 if that is not known.
	Offset int64
	// Record is the number of the record in the file, from 0; -1 if it is none or not known.
	Record int64
	// Field names the part of the record, if it is in one.
	Field string
	// Want is what should be there, Got what is.
	Want, Got string
	// Err is the error of another package that found it, or nil.
	Err error
}

// Error implements error. It is one line.
func (e *FormatError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Format, e.File)
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ": at byte %d", e.Offset)
	}
	if e.Record >= 0 {
		fmt.Fprintf(&b, ": record %d", e.Record)
	}
	if e.Field != "" {
		fmt.Fprintf(&b, ": %s", e.Field)
	}
	fmt.Fprintf(&b, ": want %s, got %s", e.Want, e.Got)
	return b.String()
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }
