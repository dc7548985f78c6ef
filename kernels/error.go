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

// Unwrap leads to the mistakes.
func (e *Error) Unwrap() error { return e.Err }

// OptionError is one mistake: a field of a Params structure, or a parameter of the
// function, and what it should be. The size of a View is "out.Size()", its alignment
// "out.Address() % 4". It is package device's.
type OptionError = device.OptionError

// mistakes gathers what is wrong with a call. Only a wrong call allocates.
type mistakes []error

// add is a mistake: option is value, and should be what want, a format, says.
func (m *mistakes) add(option string, value any, want string, args ...any) {
	*m = append(*m, &OptionError{Option: option, Value: value, Want: fmt.Sprintf(want, args...)})
}

// stream checks that there is one.
func (m *mistakes) stream(s *device.Stream) {
	missing := func(e error) bool { return e.(*OptionError).Option == "s" }
	if s == nil && !slices.ContainsFunc(*m, missing) {
		m.add("s", nil, "a stream")
	}
}

// view checks that v is memory of s's device, aligned to align bytes.
func (m *mistakes) view(s *device.Stream, name string, v device.View, align int) {
	m.stream(s)
	switch {
	case s == nil || v.Size() == 0:
		return
	case v.Size() < 0:
		m.add(name+".Size()", v.Size(), "0 or more")
		return
	}
	if v.Device() != s.Device() {
		m.add(name+".Device()", v.Device(), "the stream's, %v", s.Device())
	}
	if off := uint64(v.Address()) % uint64(align); off != 0 {
		m.add(fmt.Sprintf("%s.Address() %% %d", name, align), off, "0, for elements of %d bytes", align)
	}
}

// whole checks that v's size is a multiple of unit, which is more than 0.
func (m *mistakes) whole(name string, v device.View, unit int64) {
	if v.Size()%unit != 0 {
		m.add(name+".Size()", v.Size(), "a multiple of %d", unit)
	}
}

// length checks that v has n times size bytes. of says what size is made of: a
// product that wrapped would let a view pass that the kernel runs over.
func (m *mistakes) length(name string, v device.View, n, size int64, of string) {
	want, ok := multiply(n, size)
	switch {
	case !ok:
		m.add(name+".Size()", v.Size(), "%d times %d (%s), which is more than 2^63", n, size, of)
	case v.Size() != want:
		m.add(name+".Size()", v.Size(), "%d", want)
	}
}

// apart checks that out shares no byte with in: blocks of threads run in any order,
// so that one would read what another has overwritten.
func (m *mistakes) apart(outName string, out device.View, inName string, in device.View) {
	if len(*m) == 0 && out.Overlaps(in) {
		m.add(fmt.Sprintf("%s.Overlaps(%s)", outName, inName), true, "false, since threads run in any order")
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
