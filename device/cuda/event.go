package cuda

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

const (
	eventBlockingSync  = 1
	eventDisableTiming = 2
)

// An event and what CUDA does not tell of it.
type event struct {
	name     string
	timing   bool
	recorded atomic.Bool
	captured atomic.Uint64 // if its newest Record is in a capture, the newest one begun by then, else 0
}

func (e *event) String() string {
	if e.name == "" {
		return "an event without a name"
	}
	return fmt.Sprintf("event %q", e.name)
}

func (d *gpu) NewEvent(c driver.EventConfig) (driver.Event, error) {
	var flags uintptr
	if !c.Timing {
		flags |= eventDisableTiming
	}
	if c.BlockingSync {
		flags |= eventBlockingSync
	}
	g, err := d.enter("NewEvent")
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.eventCreate, g.result0(), flags)
	h := driver.Event(g.handle())
	if err := g.leave(r); err != nil {
		return 0, err
	}
	d.events.put(h, &event{name: c.Name, timing: c.Timing})
	return h, nil
}

func (d *gpu) FreeEvent(h driver.Event) error {
	const op = "FreeEvent"
	if d.events.take(h) == nil {
		return d.unknownEvent(op)
	}
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.eventDestroy, uintptr(h)))
}

func (d *gpu) Record(h driver.Event, s driver.Stream) error {
	const op = "Record"
	e := d.events.get(h)
	if e == nil {
		return d.unknownEvent(op)
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	r := g.call(d.cu.eventRecord, uintptr(h), uintptr(s))
	if r == success {
		e.recorded.Store(true)
		in := uint64(0)
		if g.isCapturing(s) {
			in = d.captures.begun.Load()
		}
		e.captured.Store(in)
	}
	return g.leaveStream(s, r)
}

func (d *gpu) Wait(s driver.Stream, h driver.Event) error { return d.wait(s, d, h) }

// wait is Wait for an event of owner's.
func (d *gpu) wait(s driver.Stream, owner *gpu, h driver.Event) error {
	const op = "Wait"
	e := owner.events.get(h)
	if e == nil {
		return owner.unknownEvent(op)
	}
	if in := e.captured.Load(); in > 0 && !owner.captures.underWay(in) && !d.captured(op, s) {
		return owner.capturedEvent(op, e)
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	if g.isCapturing(s) && !e.recorded.Load() {
		err := d.spoil(op, driver.CaptureIsolation, e.String()+" was never recorded")
		_ = g.leave(success)
		return err
	}
	return g.leaveStream(s, g.call(d.cu.streamWaitEvent, uintptr(s), uintptr(h), 0))
}

func (d *gpu) EventDone(h driver.Event) (bool, error) {
	p, err := d.pendingEvent("EventDone", h)
	if err == nil {
		err = d.uncaptured(p.op, h)
	}
	if err != nil {
		return false, err
	}
	return d.done(p)
}

func (d *gpu) SynchronizeEvent(ctx context.Context, h driver.Event) error {
	p, err := d.pendingEvent("SynchronizeEvent", h)
	if err == nil {
		err = d.uncaptured(p.op, h)
	}
	if err != nil {
		return err
	}
	return d.await(ctx, p)
}

func (d *gpu) pendingEvent(op string, h driver.Event) (pending, error) {
	e := d.events.get(h)
	if e == nil {
		return pending{}, d.unknownEvent(op)
	}
	return pending{op, e.name, d.cu.eventQuery, d.cu.eventSynchronize, uintptr(h)}, nil
}

// Elapsed has CUDA's resolution, half a microsecond.
func (d *gpu) Elapsed(start, end driver.Event) (time.Duration, error) {
	const op = "Elapsed"
	if d.cu.eventElapsedTime == 0 {
		return 0, d.unsupported(op, "cuEventElapsedTime")
	}
	for _, h := range []driver.Event{start, end} {
		if err := d.uncaptured(op, h); err != nil {
			return 0, err
		}
		if err := d.measurable(op, h); err != nil {
			return 0, err
		}
	}
	g, err := d.enter(op)
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.eventElapsedTime, g.result0(), uintptr(start), uintptr(end))
	ms := *(*float32)(unsafe.Pointer(&g.out[0]))
	if r == notReady {
		g.leave(success)
		return 0, d.eventError(op, driver.ErrNotComplete, "one of the two events")
	}
	if err := g.leave(r); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// measurable says why h has no time, in the order in which a user would ask.
func (d *gpu) measurable(op string, h driver.Event) error {
	e := d.events.get(h)
	switch {
	case e == nil:
		return d.unknownEvent(op)
	case !e.timing:
		return d.eventError(op, driver.ErrNoTiming, e.String())
	case !e.recorded.Load():
		return d.eventError(op, driver.ErrNotRecorded, e.String())
	}
	done, err := d.EventDone(h)
	if err == nil && !done {
		err = d.eventError(op, driver.ErrNotComplete, e.String())
	}
	return err
}

func (d *gpu) eventError(op string, sentinel error, which string) error {
	return &driver.Error{Op: op, Device: d.name, Err: sentinel, Hint: which}
}

func (d *gpu) unknownEvent(op string) error {
	if err := d.refused(op); err != nil {
		return err
	}
	return d.invalid(op, "no such event on this device: was it freed?")
}
