package driver

import (
	"errors"
	"strings"
)

// Sentinels for decisions: errors.Is finds them in an *Error.
var (
	// ErrClosed: the device is closed.
	ErrClosed = errors.New("device closed")
	// ErrOutOfMemory: device or pinned memory was refused. The device is healthy.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrFault: work on the device failed in a way that ends the device for this
	// process, an illegal address for example. Nothing on it will run again.
	ErrFault = errors.New("device fault")
	// ErrNotRecorded: the event was never recorded.
	ErrNotRecorded = errors.New("event was never recorded")
	// ErrNotComplete: the event's newest Record is not complete yet.
	ErrNotComplete = errors.New("event is not complete")
	// ErrNoTiming: the event was made without Timing.
	ErrNoTiming = errors.New("event was made without timing")
	// ErrInvalid: a handle, an address or a range that the device does not know.
	ErrInvalid = errors.New("invalid value")
	// ErrUnsupported: the device can't do this.
	ErrUnsupported = errors.New("not supported by this device")
	// ErrUnavailable: the device can't be opened here.
	ErrUnavailable = errors.New("device not available")
	// ErrCorrupt: what was copied arrived as other bytes, and nothing reported it.
	ErrCorrupt = errors.New("copied bytes arrived changed")
)

// Error says what failed, on which device, and what the likely cause is.
type Error struct {
	// Op is the operation at which the error surfaced, "CopyH2D" for example.
	Op string
	// Device is the device's name, "cuda:0".
	Device string
	// Code and Name are the driver's own, 0 and "" where it has none.
	Code int
	Name string
	// Async is true if work submitted earlier caused the error, and Op only found it.
	Async bool
	// Hint is the likely cause and what to do, a sentence.
	Hint string
	// Err is one of the package's sentinels or the error underneath.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Device)
	b.WriteString(": ")
	b.WriteString(e.Op)
	if e.Async {
		b.WriteString(" found that earlier work had failed")
	}
	if e.Name != "" {
		b.WriteString(": ")
		b.WriteString(e.Name)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Hint)
		b.WriteString(")")
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }
