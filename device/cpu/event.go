package cpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// event is a name for its newest recording.
type event struct {
	driver.EventConfig
	newest   *recording // nil until the first Record, and if that is captured
	captured *captured  // the newest Record, if it is in a capture
}

// recording is one Record of an event, or a mark that Synchronize waits for. It
// is counted by those who refer to it: its event, its operation, the waits bound
// to it and the goroutines blocked on it.
type recording struct {
	refs    int
	state   recordingState
	time    time.Duration // when it completed
	streams streamList    // those whose head waits for it
	waiters *waiter       // the goroutines that wait for it
	relays  *relay        // the waits of other devices for it
	cause   error         // why it is lost, if it stands for another device's
	next    *recording    // in the free list
}

type recordingState uint8

const (
	pending recordingState = iota
	done
	lost // the device ended before it completed
)

// waiter is a goroutine that waits for a recording.
type waiter struct {
	wake chan struct{} // holds one
	next *waiter
}

func (d *Device) newRecording() *recording {
	r := d.freeRecordings
	if r == nil {
		return new(recording)
	}
	d.freeRecordings = r.next
	*r = recording{}
	return r
}

func (d *Device) ref(r *recording) *recording {
	r.refs++
	return r
}

func (d *Device) unref(r *recording) {
	r.refs--
	if r.refs == 0 {
		r.next = d.freeRecordings
		d.freeRecordings = r
	}
}

func (d *Device) newWaiter() *waiter {
	w := d.freeWaiters
	if w == nil {
		return &waiter{wake: make(chan struct{}, 1)}
	}
	d.freeWaiters = w.next
	w.next = nil
	return w
}

// complete sets r done at time t and lets those go on that wait for it.
func (d *Device) complete(r *recording, t time.Duration) {
	r.state, r.time = done, t
	d.resume(r)
}

// resume is for a recording that has ended.
func (d *Device) resume(r *recording) {
	for s := r.streams.pop(); s != nil; s = r.streams.pop() {
		s.busy = false
		d.runnable.push(s)
	}
	r.wakeAll()
	d.post(r)
}

func (r *recording) wakeAll() {
	for w := r.waiters; w != nil; w = w.next {
		w.wake <- struct{}{}
	}
	r.waiters = nil
}

// drop removes w from the goroutines waiting; false if it was woken before.
func (r *recording) drop(w *waiter) bool {
	for p := &r.waiters; *p != nil; p = &(*p).next {
		if *p == w {
			*p = w.next
			return true
		}
	}
	return false
}

// await blocks the caller until r is done. The caller holds the mutex and a
// reference to r; await gives the mutex up while it waits.
func (d *Device) await(ctx context.Context, call string, r *recording) error {
	if r.state == pending {
		w := d.newWaiter()
		w.next, r.waiters = r.waiters, w
		d.unlock()
		var err error
		select {
		case <-w.wake:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		d.mu.Lock()
		if err != nil && r.drop(w) {
			d.freeWaiter(w)
			return d.fail(call, err, "")
		}
		if err != nil {
			<-w.wake // it was done in the meantime
		}
		d.freeWaiter(w)
	}
	if r.state == lost {
		return d.endedError(call)
	}
	return nil
}

func (d *Device) freeWaiter(w *waiter) {
	w.next = d.freeWaiters
	d.freeWaiters = w
}

// NewEvent implements driver.Device. BlockingSync is how every event of this
// device behaves.
func (d *Device) NewEvent(c driver.EventConfig) (driver.Event, error) {
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: "NewEvent", Event: c.Name}); err != nil {
		return 0, err
	}
	h := driver.Event(d.newHandle())
	d.events[h] = &event{EventConfig: c}
	return h, nil
}

// FreeEvent implements driver.Device. It succeeds after a fault too.
func (d *Device) FreeEvent(h driver.Event) error {
	const call = "FreeEvent"
	d.mu.Lock()
	defer d.unlock()
	if d.closed {
		return d.fail(call, driver.ErrClosed, "")
	}
	e, ok := d.events[h]
	if !ok {
		return d.fail(call, driver.ErrInvalid, "no such event on this device")
	}
	if err := d.trip(Call{Op: call, Event: e.Name}); err != nil {
		return err
	}
	if e.newest != nil {
		d.unref(e.newest)
	}
	delete(d.events, h)
	return nil
}

// pair is the stream and the event of a call, if it may be made. The caller holds
// d.mu.
func (d *Device) pair(call string, sh driver.Stream, eh driver.Event) (*stream, *event, error) {
	s, err := d.stream(call, sh)
	if err != nil {
		return nil, nil, err
	}
	e, err := d.event(call, eh)
	if err != nil {
		return nil, nil, err
	}
	return s, e, d.trip(Call{Op: call, Stream: s.name, Event: e.Name})
}

// Record implements driver.Device.
func (d *Device) Record(eh driver.Event, sh driver.Stream) error {
	const call = "Record"
	d.mu.Lock()
	defer d.unlock()
	s, e, err := d.pair(call, sh, eh)
	if err != nil {
		return err
	}
	if s.capture != nil {
		return d.recordInto(e, s)
	}
	r := d.newRecording()
	if e.newest != nil {
		d.unref(e.newest)
	}
	e.newest, e.captured = d.ref(r), nil
	d.enqueueRecord(s, r)
	return nil
}

// Wait implements driver.Device.
func (d *Device) Wait(sh driver.Stream, eh driver.Event) error {
	const call = "Wait"
	d.mu.Lock()
	defer d.unlock()
	s, e, err := d.pair(call, sh, eh)
	if err != nil {
		return err
	}
	if s.capture != nil || e.captured != nil {
		return d.waitInto(s, e)
	}
	if e.newest == nil {
		return nil // as in CUDA: nothing to wait for
	}
	d.enqueueWait(s, e.newest)
	return nil
}

// EventDone implements driver.Device.
func (d *Device) EventDone(h driver.Event) (bool, error) {
	const call = "EventDone"
	d.mu.Lock()
	defer d.unlock()
	e, err := d.event(call, h)
	if err != nil {
		return false, err
	}
	if err := d.trip(Call{Op: call, Event: e.Name}); err != nil {
		return false, err
	}
	if err := d.uncapturedEvent(call, e); err != nil {
		return false, err
	}
	return e.newest == nil || e.newest.state == done, nil
}

// SynchronizeEvent implements driver.Device.
func (d *Device) SynchronizeEvent(ctx context.Context, h driver.Event) error {
	const call = "SynchronizeEvent"
	d.mu.Lock()
	defer d.unlock()
	e, err := d.event(call, h)
	if err != nil {
		return err
	}
	if err := d.trip(Call{Op: call, Event: e.Name}); err != nil {
		return err
	}
	if err := d.uncapturedEvent(call, e); err != nil {
		return err
	}
	if e.newest == nil {
		return nil
	}
	r := d.ref(e.newest)
	defer d.unref(r)
	return d.await(ctx, call, r)
}

// Elapsed implements driver.Device: by the model's clock, or measured.
func (d *Device) Elapsed(start, end driver.Event) (time.Duration, error) {
	const call = "Elapsed"
	d.mu.Lock()
	defer d.unlock()
	from, err := d.event(call, start)
	if err != nil {
		return 0, err
	}
	to, err := d.event(call, end)
	if err != nil {
		return 0, err
	}
	if err := d.trip(Call{Op: call, Event: to.Name}); err != nil {
		return 0, err
	}
	for _, e := range [...]*event{from, to} {
		if err := d.uncapturedEvent(call, e); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(from.timed("start"), to.timed("end")); err != nil {
		return 0, d.fail(call, err, "")
	}
	return to.newest.time - from.newest.time, nil
}

// timed says why e can't serve as one of Elapsed's events; nil if it can.
func (e *event) timed(role string) error {
	var why error
	switch {
	case !e.Timing:
		why = driver.ErrNoTiming
	case e.newest == nil:
		why = driver.ErrNotRecorded
	case e.newest.state != done:
		why = driver.ErrNotComplete
	default:
		return nil
	}
	return fmt.Errorf("the %s event %q: %w", role, e.Name, why)
}
