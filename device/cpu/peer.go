package cpu

import (
	"fmt"
	"time"

	"github.com/leat-go/leat/device/driver"
)

var _ driver.Peer = (*Device)(nil)

// relay carries the end of a recording to another device: to a recording there that
// stands for it. The device that made it owns it, except for the time in which the
// recording's own device does: until then it hangs on the recording, or is in the
// outbox.
type relay struct {
	to    *Device
	local *recording
	time  time.Duration // of the end, on the clock of to
	lost  error         // why there will be none
	next  *relay
}

// peer is the CPU device inside of other, nil if there is none.
func peer(other driver.Device) *Device {
	d, _ := driver.Unwrap(other).(*Device)
	return d
}

// PeerOf implements driver.Peer: every CPU device is a peer of every other.
func (d *Device) PeerOf(other driver.Device) bool { return peer(other) != nil }

// WaitPeer implements driver.Peer. If other ends before its event is complete, so
// does this device when its stream comes to the wait.
func (d *Device) WaitPeer(sh driver.Stream, other driver.Device, eh driver.Event) error {
	const call = "Wait"
	from := peer(other)
	switch from {
	case nil:
		return d.fail(call, driver.ErrInvalid, "the event is of no CPU device")
	case d:
		return d.Wait(sh, eh)
	}
	name, r, err := from.newest(call, eh)
	if err != nil {
		return err
	}
	x, err := d.expect(Call{Op: call, Event: name}, sh, r)
	from.inform(x, r)
	return err
}

// newest is an event's name and its newest recording, nil if there is none. The
// caller holds a reference to it until inform.
func (d *Device) newest(call string, h driver.Event) (name string, r *recording, err error) {
	d.mu.Lock()
	defer d.unlock()
	e, err := d.event(call, h)
	if err != nil {
		return "", nil, err
	}
	if x := e.captured; x != nil && !x.capture.ended {
		return "", nil, d.spoil(call, driver.CaptureUnsupported, "a capture keeps to one device", x.capture)
	} else if x != nil {
		return "", nil, d.capturedEvent(call, e)
	}
	if e.newest == nil {
		return e.Name, nil, nil
	}
	return e.Name, d.ref(e.newest), nil
}

// expect submits a wait for r, another device's recording, and returns what is to
// be told of its end; nil if there is nothing to wait for or the call fails.
func (d *Device) expect(c Call, h driver.Stream, r *recording) (*relay, error) {
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(c.Op, h)
	if err != nil {
		return nil, err
	}
	c.Stream = s.name
	if err := d.trip(c); err != nil {
		return nil, err
	}
	if s.capture != nil {
		return nil, d.spoil(c.Op, driver.CaptureIsolation, fmt.Sprintf("event %q is another device's", c.Event), s.capture)
	}
	if r == nil {
		return nil, nil
	}
	x := d.freeRelays
	if x == nil {
		x = new(relay)
	} else {
		d.freeRelays = x.next
	}
	*x = relay{to: d, local: d.ref(d.newRecording())}
	o := d.newOp(wait, s)
	o.recording = d.ref(x.local)
	d.enqueue(o)
	return x, nil
}

// inform takes x, which is to be told of r's end, and the caller's reference to r.
// Either may be nil.
func (d *Device) inform(x *relay, r *recording) {
	if r == nil {
		return
	}
	d.mu.Lock()
	defer d.unlock()
	if x != nil {
		x.next, r.relays = r.relays, x
		if r.state != pending {
			d.post(r)
		}
	}
	d.unref(r)
}

// post puts in the outbox what other devices wait to hear of r, which has ended.
func (d *Device) post(r *recording) {
	for r.relays != nil {
		x := r.relays
		r.relays = x.next
		if r.state == lost {
			x.lost = d.endedError(wait.String())
		}
		x.time = r.time + d.opened.Sub(x.to.opened)
		x.next, d.outbox = d.outbox, x
	}
}

// unlock gives up the mutex and tells other devices what is in the outbox. Every
// unlocking is one, so that peers hear of an end at the instant at which it comes,
// and nobody holds the mutexes of two devices. A list and not recursion, as in
// settle: devices may set each other off any number of times.
func (d *Device) unlock() {
	news := d.emptyOutbox(nil)
	d.mu.Unlock()
	for news != nil {
		x := news
		news = x.to.hear(x, x.next)
	}
}

// hear takes x and lets those go on that wait for it. It returns rest, and what
// other devices are to be told of what this sets off.
func (d *Device) hear(x, rest *relay) *relay {
	d.mu.Lock()
	defer d.mu.Unlock() // not unlock: the caller delivers
	r := x.local
	if !d.ended() {
		if x.lost != nil {
			r.state, r.cause = lost, x.lost
		} else {
			r.state, r.time = done, x.time
		}
		d.resume(r)
		d.settle()
	}
	d.unref(r)
	*x = relay{next: d.freeRelays}
	d.freeRelays = x
	return d.emptyOutbox(rest)
}

// emptyOutbox is what was in the outbox, before rest.
func (d *Device) emptyOutbox(rest *relay) *relay {
	for d.outbox != nil {
		x := d.outbox
		d.outbox = x.next
		x.next, rest = rest, x
	}
	return rest
}

// CopyPeer implements driver.Peer. The copy takes the link of the device that the
// stream is of, on whichever side that is, and the time of that device's Model.
func (d *Device) CopyPeer(sh driver.Stream, dst, src driver.Place, bytes int64) error {
	const call = "CopyPeer"
	to, from := peer(dst.Device), peer(src.Device)
	switch {
	case to == nil || from == nil:
		return d.fail(call, driver.ErrInvalid, "one side is on no CPU device")
	case to == d && from == d:
		return d.CopyD2D(sh, dst.Address, src.Address, bytes)
	case to != d && from != d:
		return d.fail(call, driver.ErrInvalid, "the stream belongs to neither of the two devices")
	}
	toMem, toIn, err := to.borrow(call, "the destination", dst.Address, bytes)
	if err != nil {
		return err
	}
	defer func() { _ = toIn.drop() }()
	fromMem, fromIn, err := from.borrow(call, "the source", src.Address, bytes)
	if err != nil {
		return err
	}
	defer func() { _ = fromIn.drop() }()
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	return d.copy(copyPeer, s, end{toMem, dst.Address, toIn}, end{fromMem, src.Address, fromIn})
}

// borrow is resolve for another device's copy. The caller drops the allocation.
func (d *Device) borrow(call, role string, p driver.Address, n int64) ([]byte, *allocation, error) {
	d.mu.Lock()
	defer d.unlock()
	if err := d.endedError(call); err != nil {
		return nil, nil, err
	}
	mem, a, err := d.resolve(call, role, p, n)
	return mem, use(a), err
}
