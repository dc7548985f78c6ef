package kernels

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// Error says why a call was refused. Nothing was submitted. errors.Is finds
// device.ErrInvalid in it.
type Error struct {
	// Op is the function, "Normalize" for one.
	Op string
	// Err holds every mistake found.
	Err error
}

func (e *Error) Error() string { return "kernels: " + e.Op + ": " + e.Err.Error() }

// Unwrap leads to the mistakes and to device.ErrInvalid.
func (e *Error) Unwrap() []error { return []error{e.Err, device.ErrInvalid} }

// mistakes gathers what is wrong with a call. Only a wrong call allocates.
type mistakes []error

func (m *mistakes) addf(format string, args ...any) { *m = append(*m, fmt.Errorf(format, args...)) }

// view checks that v is memory of s's device, aligned to align bytes.
func (m *mistakes) view(s *device.Stream, name string, v device.View, align int) {
	if v.Bytes() == 0 {
		return
	}
	if v.Device() != s.Device() {
		*m = append(*m, fmt.Errorf("%s is memory of another device than the stream's", name))
	}
	if uint64(v.Address())%uint64(align) != 0 {
		*m = append(*m, fmt.Errorf("%s is not aligned to %d bytes", name, align))
	}
}

// length checks that v has want bytes.
func (m *mistakes) length(name string, v device.View, want int64) {
	if v.Bytes() != want {
		*m = append(*m, fmt.Errorf("%s has %d bytes, want %d", name, v.Bytes(), want))
	}
}

func (m mistakes) err(op string) error {
	if len(m) == 0 {
		return nil
	}
	return &Error{Op: op, Err: errors.Join(m...)}
}
