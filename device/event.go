package device

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// EventOptions is what an event is made with. The zero value is ready to use.
type EventOptions struct {
	// Timing keeps the time of each Record, for Elapsed. Off by default: it makes
	// recording more expensive on a GPU.
	Timing bool
	// BlockingSync makes Synchronize sleep instead of spinning on a core.
	BlockingSync bool
	// Name appears in reports and traces.
	Name string
	// Witness, if not nil, is the Witness that the host's waits for the event belong
	// to.
	Witness *Witness
}

// An Event marks a point in a stream. It is safe for concurrent use.
type Event struct {
	dev     *Device
	h       driver.Event
	name    string
	records atomic.Uint64
	closed  atomic.Bool
}

// NewEvent makes an event. The caller owns it until Close.
func (d *Device) NewEvent(o EventOptions) (*Event, error) {
	h, err := d.drv.NewEvent(driver.EventConfig{Timing: o.Timing, BlockingSync: o.BlockingSync, Name: o.Name, Witness: o.Witness.of()})
	if err != nil {
		return nil, err
	}
	d.live.events.Add(1)
	d.live.allocations.Add(1)
	return &Event{dev: d, h: h, name: o.Name}, nil
}

// Device is the event's device.
func (e *Event) Device() *Device { return e.dev }

// Name is the name that the event was made with.
func (e *Event) Name() string { return e.name }

// Records counts the Records of e issued so far: the lap that a Wait issued now
// would bind to.
func (e *Event) Records() uint64 { return e.records.Load() }

// Done reports whether e's newest Record is complete; true if there is none.
func (e *Event) Done() (bool, error) {
	if err := e.open("EventDone"); err != nil {
		return false, err
	}
	return e.dev.drv.EventDone(e.h)
}

// Synchronize blocks the caller until e's newest Record is complete.
func (e *Event) Synchronize(ctx context.Context) error {
	if err := e.open("SynchronizeEvent"); err != nil {
		return err
	}
	return e.dev.drv.SynchronizeEvent(ctx, e.h)
}

// Close frees the event. Streams that wait for it go on waiting. Close it once: a
// second Close, and every later call, is ErrInvalid. The driver may have given the
// handle to another event by then, so it isn't asked.
func (e *Event) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return e.dev.stale("FreeEvent", e.closedHint())
	}
	err := e.dev.drv.FreeEvent(e.h)
	if err != nil {
		e.closed.Store(false)
		return err
	}
	e.dev.live.events.Add(-1)
	return nil
}

func (e *Event) closedHint() string { return fmt.Sprintf("the event %q was closed before", e.name) }

// open refuses op on a closed event.
func (e *Event) open(op string) error {
	if e.closed.Load() {
		return e.dev.stale(op, e.closedHint())
	}
	return nil
}

// Elapsed is the device time from start's newest Record to end's. Both must be
// made with Timing, recorded and complete; the error says which is not
// (ErrNoTiming, ErrNotRecorded, ErrNotComplete).
func Elapsed(start, end *Event) (time.Duration, error) {
	if start.dev != end.dev {
		return 0, start.dev.invalid("Elapsed", errForeignEvent)
	}
	for _, e := range [...]*Event{start, end} {
		if err := e.open("Elapsed"); err != nil {
			return 0, err
		}
	}
	return start.dev.drv.Elapsed(start.h, end.h)
}
