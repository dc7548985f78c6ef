package meter

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leat-go/leat/device"
)

// inFlight is how many values can be under way. One place more keeps the newest that
// has arrived.
const inFlight = 16

// A ring is a Meter of values of so many bytes.
type ring struct {
	dev     *device.Device
	witness *device.Witness // of the values: that one has arrived orders nothing else
	size    int64
	host    *device.HostBuffer
	places  []*place

	mu      sync.Mutex
	free    []*place
	pending []*place // under way, in the order of their Pushes
	unknown []*place // a copy was submitted, and no event tells its end
	newest  *place   // of those that have arrived, nil before the first
	pushes  int64
	late    []*device.Stream // of collect: streams whose oldest copy is under way
	closing bool

	closed   chan struct{} // closed at the end of Close
	closeErr error         // set before that
}

// A place holds one value. It is judged by its own event alone: that a later Push has
// arrived says nothing about one that another stream makes.
type place struct {
	host    []byte
	arrived *device.Event
	stream  *device.Stream // that it was pushed from last
	number  int64          // of the Push, 0 if what is in it is no value
}

func newRing(dev *device.Device, size int64) (*ring, error) {
	r := &ring{dev: dev, witness: dev.NewWitness(), size: size, closed: make(chan struct{})}
	var err error
	if r.host, err = dev.AllocHost(size*(inFlight+1), device.HostOptions{}); err != nil {
		return nil, err
	}
	for i := range int64(inFlight + 1) {
		e, err := dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("arrived %d", i), Witness: r.witness})
		if err != nil {
			return nil, errors.Join(err, r.release())
		}
		r.places = append(r.places, &place{host: r.host.Bytes()[i*size:][:size], arrived: e})
	}
	r.free = slices.Clone(r.places)
	return r, nil
}

func (r *ring) push(s *device.Stream, v device.View) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return errClosed{}
	}
	r.pushes++
	if err := r.takes(s, v); err != nil {
		return err
	}
	if len(r.pending)+len(r.unknown) >= inFlight {
		if err := r.collect(); err != nil || len(r.pending)+len(r.unknown) >= inFlight {
			return err
		}
	}
	p := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	p.stream, p.number = s, 0 // what is in it is no value from here on
	err := s.CopyD2H(p.host, v)
	if refused(err) {
		r.free = append(r.free, p)
		return fmt.Errorf("meter: Push: %w", err)
	}
	if err == nil {
		err = s.Record(p.arrived)
	}
	if err != nil {
		r.unknown = append(r.unknown, p)
		return fmt.Errorf("meter: Push: %w", err)
	}
	p.number = r.pushes
	r.pending = append(r.pending, p)
	return nil
}

// takes says why a value of that view and stream can't be pushed.
func (r *ring) takes(s *device.Stream, v device.View) error {
	hint := ""
	switch {
	case s == nil:
		hint = "the stream is nil"
	case s.Device() != r.dev:
		hint = fmt.Sprintf("stream %q is of %s", s.Name(), s.Device().Name())
	case v.Size() != r.size:
		hint = fmt.Sprintf("the view has %d bytes, want the meter's %d", v.Size(), r.size)
	default:
		return nil
	}
	return &device.Error{Op: "meter.Push", Device: r.dev.Name(), Err: device.ErrInvalid, Hint: hint}
}

// refused reports whether a call was not made, for what it was given: a stream that is
// closed, or memory that was freed. Then it has left nothing behind.
func refused(err error) bool {
	var e *device.Error
	return errors.Is(err, device.ErrInvalid) && errors.As(err, &e) && !e.Async
}

// collect finds what has arrived. A place of unknown fate gets an event behind its copy,
// if the stream takes one by now, and is under way like the others.
func (r *ring) collect() error {
	r.unknown = slices.DeleteFunc(r.unknown, func(p *place) bool {
		recorded := p.stream.Record(p.arrived) == nil
		if recorded {
			r.pending = append(r.pending, p)
		}
		return recorded
	})
	r.late = r.late[:0]
	pending := r.pending
	r.pending = pending[:0]
	for i, p := range pending {
		done, err := r.hasArrived(p)
		switch {
		case err != nil:
			r.pending = append(r.pending, pending[i:]...)
			return fmt.Errorf("meter: %w", err)
		case done:
			r.arrive(p)
		default:
			r.pending = append(r.pending, p)
		}
	}
	return nil
}

// hasArrived asks the place's event, unless one before it on its stream is late.
func (r *ring) hasArrived(p *place) (bool, error) {
	if slices.Contains(r.late, p.stream) {
		return false, nil
	}
	done, err := p.arrived.Done()
	switch {
	case err != nil:
	case done:
		err = r.witness.HostAtRest(p.host)
	default:
		r.late = append(r.late, p.stream)
	}
	return done, err
}

// arrive shows the value, if it is newer than the one that is shown.
func (r *ring) arrive(p *place) {
	if r.newest == nil && p.number > 0 {
		r.newest = p
		return
	}
	if r.newest != nil && p.number > r.newest.number {
		p, r.newest = r.newest, p
	}
	r.free = append(r.free, p)
}

// latest copies the newest value, if there is one, and returns its number.
func (r *ring) latest(value []byte) (number int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return 0, errClosed{}
	}
	if err := r.collect(); err != nil || r.newest == nil {
		return 0, err
	}
	copy(value, r.newest.host)
	return r.newest.number, nil
}
