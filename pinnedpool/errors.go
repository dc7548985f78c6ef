package pinnedpool

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
)

// ErrClosed is returned by Get once the pool is closed.
var ErrClosed = errors.New("pinnedpool: closed")

// ErrExhausted is returned by Get when every buffer is quarantined, so that none
// will ever be free.
var ErrExhausted = errors.New("pinnedpool: every buffer is quarantined")

// MemoryError says that the pinned memory asked for is not to be had. errors.Is
// finds device.ErrOutOfMemory in it.
type MemoryError struct {
	// Slots and SlotBytes were asked for.
	Slots     int
	SlotBytes int64
	// GotBytes is how much could be had: the budget, or what was pinned until the
	// device refused.
	GotBytes int64
	// Hint says what to do about it.
	Hint string
	// Err is the device's refusal, nil where the budget refused.
	Err error
}

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("pinnedpool: %d slots of %d bytes asked for, %d bytes to be had (%s)",
		e.Slots, e.SlotBytes, e.GotBytes, e.Hint)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the device's refusal and device.ErrOutOfMemory.
func (e *MemoryError) Unwrap() []error {
	if e.Err != nil {
		return []error{device.ErrOutOfMemory, e.Err}
	}
	return []error{device.ErrOutOfMemory}
}

// OverwriteError says that somebody wrote to a buffer that wasn't theirs: a producer
// that kept its slice, or a copy that nothing ordered. Only builds with the tag
// invariants look for it.
type OverwriteError struct {
	// Buffer is the buffer's ID, Offset that of the first byte that was changed.
	Buffer int
	Offset int64
	// InFlight is true if the buffer's copies were under way; else it was free.
	InFlight bool
}

func (e *OverwriteError) Error() string {
	when := "was free"
	if e.InFlight {
		when = "was being copied"
	}
	return fmt.Sprintf("pinnedpool: byte %d of buffer %d was written to while the buffer %s: somebody kept its memory", e.Offset, e.Buffer, when)
}
