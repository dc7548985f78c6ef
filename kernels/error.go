package kernels

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/leat-go/leat/device"
)

// Error says why a call was refused. Nothing was submitted. errors.Is finds
// device.ErrInvalid in it.
type Error struct {
	// Op is the function, "Normalize" for example.
	Op string
	// Err holds every mistake found.
	Err error
}

func (e *Error) Error() string { return "kernels: " + e.Op + ": " + e.Err.Error() }

// Unwrap leads to the mistakes and to device.ErrInvalid.
func (e *Error) Unwrap() []error { return []error{e.Err, device.ErrInvalid} }

// mistakes gathers what is wrong with a call. Only a wrong call allocates.
type mistakes []error

var errNoStream = errors.New("the stream is nil")

// stream checks that there is one.
func (m *mistakes) stream(s *device.Stream) {
	if s == nil && !slices.Contains(*m, errNoStream) {
		*m = append(*m, errNoStream)
	}
}

func (m *mistakes) addf(format string, args ...any) { *m = append(*m, fmt.Errorf(format, args...)) }

// view checks that v is memory of s's device, aligned to align bytes.
func (m *mistakes) view(s *device.Stream, name string, v device.View, align int) {
	m.stream(s)
	switch {
	case s == nil || v.Size() == 0:
		return
	case v.Size() < 0:
		*m = append(*m, fmt.Errorf("%s has %d bytes, want 0 or more", name, v.Size()))
		return
	}
	if v.Device() != s.Device() {
		*m = append(*m, fmt.Errorf("%s is memory of another device than the stream's", name))
	}
	if uint64(v.Address())%uint64(align) != 0 {
		*m = append(*m, fmt.Errorf("%s is not aligned to %d bytes", name, align))
	}
}

// length checks that v has n times size bytes. of says what size is made of: a
// product that wrapped would let a view pass that the kernel runs over.
func (m *mistakes) length(name string, v device.View, n, size int64, of string) {
	want, ok := multiply(n, size)
	switch {
	case !ok:
		*m = append(*m, fmt.Errorf("%s has %d bytes, want %d times %d (%s), which is more than 2^63", name, v.Size(), n, size, of))
	case v.Size() != want:
		*m = append(*m, fmt.Errorf("%s has %d bytes, want %d", name, v.Size(), want))
	}
}

// apart checks that out shares no byte with in: blocks of threads run in any order,
// so that one would read what another has overwritten.
func (m *mistakes) apart(outName string, out device.View, inName string, in device.View) {
	if len(*m) == 0 && out.Overlaps(in) {
		*m = append(*m, fmt.Errorf("%s and %s overlap", outName, inName))
	}
}

// multiply is a·b for numbers that are not negative; ok is false if it does not fit.
func multiply(a, b int64) (product int64, ok bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	return int64(low), a >= 0 && b >= 0 && high == 0 && low <= math.MaxInt64
}

func (m mistakes) err(op string) error {
	if len(m) == 0 {
		return nil
	}
	return &Error{Op: op, Err: errors.Join(m...)}
}
