package order

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
)

// The calls that are no work of a stream, as reports name them.
const (
	opFree           = "Free"
	opFreeHost       = "FreeHost"
	opUnregisterHost = "UnregisterHost"
	opAtRest         = "AtRest"
)

// A Device is a driver.Device that passes every call on and has its Checker follow.
type Device struct {
	driver.Device
	checker *Checker
	name    string
	lost    atomic.Bool // a fault or Close has ended it: nothing of it runs any more

	// Guarded by the checker's mutex.
	handles map[driver.Stream]*handle
	adopted map[uintptr]*stream // by native handle, for ever
	events  map[driver.Event]*event
	graphs  map[driver.Graph]*graph
	execs   map[driver.Exec]*exec
}

var (
	_ driver.Peer     = (*Device)(nil)
	_ driver.Grapher  = (*Device)(nil)
	_ driver.Wrapper  = (*Device)(nil)
	_ driver.Observer = (*Device)(nil)
)

// Wrap makes c watch d and takes it: closing the Device closes d. What is done with d
// past the Device, c doesn't know of.
func (c *Checker) Wrap(d driver.Device) *Device {
	return &Device{
		Device: d, checker: c, name: driver.DeviceName(d.Properties()),
		handles: make(map[driver.Stream]*handle), adopted: make(map[uintptr]*stream), events: make(map[driver.Event]*event),
		graphs: make(map[driver.Graph]*graph), execs: make(map[driver.Exec]*exec),
	}
}

// Checker is the one that watches the device.
func (d *Device) Checker() *Checker { return d.checker }

// Unwrap implements driver.Wrapper.
func (d *Device) Unwrap() driver.Device { return d.Device }

// Properties, and every method below, is driver.Device's.
func (d *Device) Properties() driver.Properties {
	p := d.Device.Properties()
	p.Notes = append(slices.Clone(p.Notes), "every access to memory is checked for its order (device/order)")
	return p
}

// ended is err. If it says that the device has ended, the host has seen the end of
// all work.
func (d *Device) ended(err error) error {
	if err != nil && errors.Is(err, driver.ErrFault) && !d.lost.Swap(true) {
		d.rest()
	}
	return err
}

// rest grants the host the end of all of the device's work.
func (d *Device) rest() {
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		if s.device == d {
			c.sees(s.seen)
		}
	}
}

func (d *Device) Synchronize(ctx context.Context) error {
	c := d.checker
	c.mu.Lock()
	all := c.snapshot(nil)
	for _, s := range c.streams {
		if s.device == d {
			all.join(s.seen)
		}
	}
	c.mu.Unlock()
	err := d.Device.Synchronize(ctx)
	c.grant(all, nil, err == nil)
	return d.ended(err)
}

// Close ends all work: the driver drops it or waits for it.
func (d *Device) Close() error {
	err := d.Device.Close()
	if err == nil && !d.lost.Swap(true) {
		d.rest()
	}
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range d.handles {
		d.retire(h.stream)
	}
	for _, s := range d.adopted {
		d.retire(s)
	}
	clear(d.handles)
	clear(d.adopted)
	clear(d.events)
	clear(d.graphs)
	clear(d.execs)
	return d.ended(err)
}

// retire notes that no more work comes of s. The caller holds the mutex.
func (d *Device) retire(s *stream) {
	c := d.checker
	if c.streams[s.index] == s && !slices.Contains(c.ended, s) {
		c.ended = append(c.ended, s)
	}
}

func (d *Device) NewStream(config driver.StreamConfig) (driver.Stream, error) {
	h, err := d.Device.NewStream(config)
	if err != nil {
		return h, d.ended(err)
	}
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := d.adopted[uintptr(h)]; ok { // another library has ended that one
		delete(d.adopted, uintptr(h))
		d.retire(old)
	}
	d.handles[h] = &handle{d.newStream(config.Name), 1}
	return h, nil
}

// AdoptStream of a native handle that was adopted before, or made here, is taken for
// the same stream.
func (d *Device) AdoptStream(native uintptr) (driver.Stream, error) {
	h, err := d.Device.AdoptStream(native)
	if err != nil {
		return h, d.ended(err)
	}
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := d.handles[h]; ok { // the driver has one handle for both
		known.users++
		return h, nil
	}
	var s *stream
	if own, ok := d.handles[driver.Stream(native)]; ok {
		s = own.stream
	} else if s = d.adopted[native]; s == nil {
		s = d.newStream(nativeName(native))
		d.adopted[native] = s
	}
	d.handles[h] = &handle{s, 1}
	return h, nil
}

func (d *Device) FreeStream(h driver.Stream) error {
	if err := d.Device.FreeStream(h); err != nil {
		return d.ended(err)
	}
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := d.handles[h]
	if !ok {
		return nil
	}
	if known.users--; known.users > 0 {
		return nil
	}
	delete(d.handles, h)
	for _, other := range d.handles {
		if other.stream == known.stream {
			return nil
		}
	}
	for _, s := range d.adopted {
		if s == known.stream {
			return nil
		}
	}
	d.retire(known.stream)
	return nil
}

func (d *Device) StreamDone(h driver.Stream) (bool, error) {
	seen, ok := d.streamSnapshot(h)
	done, err := d.Device.StreamDone(h)
	if ok {
		d.checker.grant(seen, nil, done && err == nil)
	}
	return done, d.ended(err)
}

// StreamIdle implements driver.Observer.
func (d *Device) StreamIdle(h driver.Stream) (bool, error) {
	idle, err := driver.StreamIdle(d.Device, h)
	return idle, d.ended(err)
}

func (d *Device) SynchronizeStream(ctx context.Context, h driver.Stream) error {
	seen, ok := d.streamSnapshot(h)
	err := d.Device.SynchronizeStream(ctx, h)
	if ok {
		d.checker.grant(seen, nil, err == nil)
	}
	return d.ended(err)
}

// streamSnapshot is what a wait for the stream grants; false if the host has it.
func (d *Device) streamSnapshot(h driver.Stream) (clock, bool) {
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := d.handles[h]
	if !ok {
		return nil, false
	}
	return c.snapshot(known.stream.seen), true
}

func (d *Device) NewEvent(config driver.EventConfig) (driver.Event, error) {
	e, err := d.Device.NewEvent(config)
	if err != nil {
		return e, d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	w, _ := config.Witness.(*witness)
	if w != nil && w.device.checker != d.checker {
		w = nil // it tells another Checker, and not this one
	}
	d.events[e] = &event{name: config.Name, witness: w}
	return e, nil
}

func (d *Device) FreeEvent(e driver.Event) error {
	if err := d.Device.FreeEvent(e); err != nil {
		return d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	delete(d.events, e)
	return nil
}

func (d *Device) Record(e driver.Event, h driver.Stream) error {
	if err := d.Device.Record(e, h); err != nil {
		return d.ended(err)
	}
	c := d.checker
	by := c.here("Record", "", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	s, x := d.handles[h], d.events[e]
	if s == nil || x == nil {
		return nil
	}
	of, _ := s.stream.place()
	x.recorded = true
	x.capture = s.stream.capture
	x.seen.copyOf(of.seen)
	of.record(mark{of.last, x.name, by})
	return nil
}

func (d *Device) Wait(h driver.Stream, e driver.Event) error {
	if err := d.Device.Wait(h, e); err != nil {
		return d.ended(err)
	}
	d.waited(h, d, e)
	return nil
}

// waited makes h's stream come after of's event.
func (d *Device) waited(h driver.Stream, of *Device, e driver.Event) {
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, x := d.handles[h], of.events[e]; s != nil && x != nil && x.recorded {
		if x.capture != nil {
			x.capture.join(s.stream)
		}
		by, _ := s.stream.place()
		by.seen.join(x.seen)
	}
}

func (d *Device) EventDone(e driver.Event) (bool, error) {
	seen, to, ok := d.eventSnapshot(e)
	done, err := d.Device.EventDone(e)
	if ok {
		d.checker.grant(seen, to, done && err == nil)
	}
	return done, d.ended(err)
}

func (d *Device) SynchronizeEvent(ctx context.Context, e driver.Event) error {
	seen, to, ok := d.eventSnapshot(e)
	err := d.Device.SynchronizeEvent(ctx, e)
	if ok {
		d.checker.grant(seen, to, err == nil)
	}
	return d.ended(err)
}

// eventSnapshot is what a wait for the event's newest Record grants, and to whom.
func (d *Device) eventSnapshot(e driver.Event) (seen clock, to *witness, ok bool) {
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := d.events[e]
	if !ok || !x.recorded || x.capture != nil {
		return nil, nil, false
	}
	return c.snapshot(x.seen), x.witness, true
}
