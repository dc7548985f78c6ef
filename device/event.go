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
	// Witness, if not nil, is the only one for which the host's waits for the event
	// count; see Witness.
	Witness *Witness
}

// An Event marks a point in a stream. It is safe for concurrent use.
type Event struct {
	dev     *Device
	h       driver.Event
	name    string
	records atomic.Uint64
	closing closing
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

// Close frees the event. Streams that wait for it go on waiting. Every other call is
// ErrInvalid from then on, and a second Close does nothing.
func (e *Event) Close() error {
	return e.closing.close(func() error {
		if err := e.dev.drv.FreeEvent(e.h); err != nil {
			return err
		}
		e.dev.live.events.Add(-1)
		return nil
	})
}

// open refuses op on a closed event.
func (e *Event) open(op string) error {
	if e.closing.closed.Load() {
		return e.dev.stale(op, fmt.Sprintf("the event %q was closed before", e.name))
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
