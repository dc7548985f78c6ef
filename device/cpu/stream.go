package cpu

import (
	"context"
	"time"

	"github.com/leat-go/leat/device/driver"
)

// stream is a FIFO queue of operations. Its head is either on its way (handed to
// an engine, or waiting for a recording: busy is true) or about to be.
type stream struct {
	handle   driver.Stream
	name     string
	number   uint64 // in the order of making
	priority int
	freed    bool
	capture  *capture // nil unless its work is being captured

	head, tail *op
	busy       bool
	count      uint64        // operations submitted so far
	time       time.Duration // when the work done so far was done
	next       *stream       // in the list of runnable streams, or of those that wait for a recording
}

func (s *stream) push(o *op) {
	if s.tail == nil {
		s.head = o
	} else {
		s.tail.next = o
	}
	s.tail = o
	s.count++
}

func (s *stream) pop() {
	o := s.head
	s.head = o.next
	if s.head == nil {
		s.tail = nil
	}
	o.next = nil
}

// streamList is a FIFO list of streams.
type streamList struct{ first, last *stream }

func (l *streamList) push(s *stream) {
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
}

func (l *streamList) pop() *stream {
	s := l.first
	if s == nil {
		return nil
	}
	l.first = s.next
	if l.first == nil {
		l.last = nil
	}
	s.next = nil
	return s
}

// NewStream implements driver.Device.
func (d *Device) NewStream(c driver.StreamConfig) (driver.Stream, error) {
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: "NewStream", Stream: c.Name}); err != nil {
		return 0, err
	}
	s := &stream{
		handle:   driver.Stream(d.newHandle()),
		name:     c.Name,
		number:   uint64(d.made),
		priority: min(max(c.Priority, highestPriority), lowestPriority),
	}
	d.made++
	d.streams[s.handle] = s
	d.working[s] = struct{}{}
	return s.handle, nil
}

// AdoptStream implements driver.Device. A native handle of this device is that of
// a stream made on it; the two handles are then one stream.
func (d *Device) AdoptStream(native uintptr) (driver.Stream, error) {
	const call = "AdoptStream"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, driver.Stream(native))
	if err != nil {
		return 0, err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return 0, err
	}
	h := driver.Stream(d.newHandle())
	d.streams[h] = s
	return h, nil
}

// FreeStream implements driver.Device. It succeeds after a fault too.
func (d *Device) FreeStream(h driver.Stream) error {
	const call = "FreeStream"
	d.mu.Lock()
	defer d.unlock()
	if d.closed {
		return d.fail(call, driver.ErrClosed, "")
	}
	s, ok := d.streams[h]
	if !ok {
		return d.fail(call, driver.ErrInvalid, "no such stream on this device")
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return err
	}
	if s.capture != nil {
		return d.spoil(call, driver.CaptureUnsupported, on(s), s.capture)
	}
	delete(d.streams, h)
	if s.handle == h { // not an adopted one
		s.freed = true
		d.forget(s)
	}
	return nil
}

// forget lets go of a freed stream whose work is done.
func (d *Device) forget(s *stream) {
	if s.freed && s.head == nil {
		delete(d.working, s)
	}
}

// StreamDone implements driver.Device.
func (d *Device) StreamDone(h driver.Stream) (bool, error) {
	const call = "StreamDone"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, h)
	if err != nil {
		return false, err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return false, err
	}
	if err := d.uncaptured(call, s); err != nil {
		return false, err
	}
	return s.head == nil, nil
}

// SynchronizeStream implements driver.Device.
func (d *Device) SynchronizeStream(ctx context.Context, h driver.Stream) error {
	const call = "SynchronizeStream"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, h)
	if err != nil {
		return err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return err
	}
	if err := d.uncaptured(call, s); err != nil {
		return err
	}
	if s.head == nil {
		return nil
	}
	r := d.mark(s)
	defer d.unref(r)
	return d.await(ctx, call, r)
}

// Synchronize implements driver.Device.
func (d *Device) Synchronize(ctx context.Context) error {
	const call = "Synchronize"
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: call}); err != nil {
		return err
	}
	if len(d.captures) > 0 {
		return d.spoil(call, driver.CaptureUnsupported, "streams of the device are captured", d.captures...)
	}
	var marks []*recording
	for s := range d.working {
		if s.head != nil {
			marks = append(marks, d.mark(s))
		}
	}
	var err error
	for _, r := range marks {
		if err == nil {
			err = d.await(ctx, call, r)
		}
		d.unref(r)
	}
	return err
}

// mark records the work submitted to s so far. The caller holds a reference to the
// recording.
func (d *Device) mark(s *stream) *recording {
	r := d.newRecording()
	o := d.newOp(record, s)
	o.recording = d.ref(r)
	d.enqueue(o)
	return d.ref(r)
}

// submit is the end of every call that submits o. The caller holds the mutex.
func (d *Device) submit(o *op, c Call) error {
	if d.adversary != nil {
		if err := d.trip(c); err != nil {
			d.release(o)
			return err
		}
	}
	if o.stream.capture != nil {
		return d.keep(o, c)
	}
	if d.adversary != nil {
		c.N = d.calls
		d.adversary.prepare(o, c)
	}
	d.enqueue(o)
	return nil
}

func (d *Device) enqueue(o *op) {
	s := o.stream
	d.seq++
	o.seq = d.seq
	o.submitted = d.now()
	if d.model != nil {
		o.cost += d.model.duration(o)
	}
	s.push(o)
	if !s.busy {
		d.runnable.push(s)
		d.settle()
	}
}

// settle advances every stream that can be, until all wait for something. A list
// and not recursion: a recording may set off a chain of any length.
func (d *Device) settle() {
	for s := d.runnable.pop(); s != nil; s = d.runnable.pop() {
		d.advance(s)
	}
	d.engines.settled()
}

// advance runs s's records and waits and hands the next operation that takes an
// engine to it.
func (d *Device) advance(s *stream) {
	for s.head != nil {
		o := s.head
		s.time = max(s.time, o.submitted)
		switch o.kind {
		case record:
			d.complete(o.recording, s.time)
		case wait:
			switch o.recording.state {
			case pending:
				s.busy = true
				o.recording.streams.push(s)
				return
			case lost: // with another device: on this one it would have been dropped
				d.fault = newFault(o, o.recording.cause)
				d.abandon()
				return
			}
			s.time = max(s.time, o.recording.time)
		default:
			s.busy = true
			o.ready = s.time
			if o.kind == hostFunc {
				d.host.offer(o)
			} else {
				d.engines.offer(o)
			}
			return
		}
		s.pop()
		d.release(o)
	}
	d.forget(s)
}

// finish takes o, whose body has run and returned err. The caller holds the mutex,
// which finish gives up for a moment if other devices wait for what has ended: so
// Close waits for their being told too.
func (d *Device) finish(o *op, err error) {
	if d.ended() { // o's stream has dropped it
		d.release(o)
		return
	}
	if err == nil {
		err = o.fault
	}
	s := o.stream
	s.pop()
	s.busy = false
	s.time = o.end
	if err != nil {
		d.fault = newFault(o, err)
		d.release(o)
		d.abandon()
	} else {
		d.release(o)
		d.runnable.push(s)
		d.settle()
	}
	if d.outbox != nil {
		d.unlock()
		d.mu.Lock()
	}
}
