package source_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

// The error names every place that is known, and no other.
func TestFormatErrorSaysWhere(t *testing.T) {
	cause := errors.New("cause")
	e := &source.FormatError{Format: "tar", File: "a.tar", Offset: 512, Record: 3, Field: "x.jpg", Want: "a size", Got: "text", Err: cause}
	require.EqualError(t, e, "tar: a.tar: at byte 512: record 3: x.jpg: want a size, got text")
	require.ErrorIs(t, e, cause)
	require.EqualError(t, &source.FormatError{Format: "tar", File: "a.tar", Offset: -1, Record: -1, Want: "a tar file", Got: "nothing"}, "tar: a.tar: want a tar file, got nothing")
}
