package prefetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/leat-go/leat/device"
)

// A Meter brings small values back from the device while training goes on: the
// loss of some steps ago, without waiting for it. Any goroutine may push to it, from
// any stream of its device, and read it.
type Meter struct {
	dev     *device.Device
	witness *device.Witness // of the values: that one has arrived orders nothing else
	bytes   int64
	host    *device.HostBuffer
	places  []*place
	closed  once

	mu      sync.Mutex
	closing bool
	free    []*place
	pending []*place // under way, in the order of their Pushes
	doubt   []*place // a copy was submitted that no event tells the end of
	newest  *place   // of those that have arrived, nil before the first
	pushes  int64
	late    []*device.Stream // of settle: streams whose oldest copy is under way
}

// A place holds one value. It is judged by its own event alone: that a later Push has
// arrived says nothing about one that another stream makes.
type place struct {
	host    []byte
	arrived *device.Event
	stream  *device.Stream // that it was pushed from last
	number  int64          // of the Push, 0 if what is in it is no value
}

// meterValues is how many values can be under way; more are left out. One place more
// keeps the newest that has arrived.
const meterValues = 16

// NewMeter makes a meter for values of that many bytes. The caller owns it until
// Close.
func NewMeter(dev *device.Device, bytes int64) (*Meter, error) {
	const places = meterValues + 1
	switch {
	case dev == nil:
		return nil, errors.New("prefetch: NewMeter needs a device")
	case bytes < 1:
		return nil, fmt.Errorf("prefetch: NewMeter: %d bytes, want 1 or more", bytes)
	case bytes > math.MaxInt/places:
		return nil, fmt.Errorf("prefetch: NewMeter: %d values of %d bytes are more than any memory holds", places, bytes)
	}
	m := &Meter{dev: dev, witness: dev.NewWitness(), bytes: bytes}
	var err error
	if m.host, err = dev.AllocHost(bytes*places, device.HostOptions{}); err != nil {
		return nil, err
	}
	for i := range int64(places) {
		e, err := dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("arrived %d", i), Witness: m.witness})
		if err != nil {
			return nil, errors.Join(err, m.release())
		}
		m.places = append(m.places, &place{host: m.host.Bytes()[i*bytes:][:bytes], arrived: e})
	}
	m.free = slices.Clone(m.places)
	return m, nil
}

// Push submits to s a copy of v, as it is when s gets there, and never waits. If
// the host is so far ahead that sixteen values are under way, this one is left out
// and Push reports false. A value whose Push fails is never shown.
func (m *Meter) Push(s *device.Stream, v device.View) (taken bool, err error) {
	if v.Size() != m.bytes {
		return false, fmt.Errorf("prefetch: Meter.Push: %d bytes, want %d", v.Size(), m.bytes)
	}
	if s == nil {
		return false, fmt.Errorf("prefetch: Meter.Push: %w", errNoStream)
	}
	if s.Device() != m.dev {
		return false, fmt.Errorf("prefetch: Meter.Push: stream %q is of another device than the meter", s.Name())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return false, ErrClosed
	}
	if len(m.free) == 0 || len(m.pending)+len(m.doubt) >= meterValues {
		if err := m.settle(); err != nil {
			return false, err
		}
		if len(m.pending)+len(m.doubt) >= meterValues {
			return false, nil
		}
	}
	p := m.free[len(m.free)-1]
	m.free = m.free[:len(m.free)-1]
	p.stream, p.number = s, 0 // what is in it is no value from here on
	err = s.CopyD2H(p.host, v)
	if refused(err) {
		m.free = append(m.free, p)
		return false, fmt.Errorf("prefetch: Meter.Push: %w", err)
	}
	if err == nil {
		err = s.Record(p.arrived)
	}
	if err != nil {
		m.doubt = append(m.doubt, p)
		return false, fmt.Errorf("prefetch: Meter.Push: %w", err)
	}
	m.pushes++
	p.number = m.pushes
	m.pending = append(m.pending, p)
	return true, nil
}

// refused reports whether a call was not made, for what it was given: a stream that is
// closed, say, or memory that was freed. Then it has left nothing behind.
func refused(err error) bool {
	var e *device.Error
	return errors.Is(err, device.ErrInvalid) && errors.As(err, &e) && !e.Async
}

// settle finds what has arrived. What is in doubt gets an event behind it, if its
// stream takes one by now, and is under way like the others.
func (m *Meter) settle() error {
	m.doubt = slices.DeleteFunc(m.doubt, func(p *place) bool {
		recorded := p.stream.Record(p.arrived) == nil
		if recorded {
			m.pending = append(m.pending, p)
		}
		return recorded
	})
	m.late = m.late[:0]
	pending := m.pending
	m.pending = pending[:0]
	for i, p := range pending {
		done, err := m.hasArrived(p)
		switch {
		case err != nil:
			m.pending = append(m.pending, pending[i:]...)
			return err
		case done:
			m.arrive(p)
		default:
			m.pending = append(m.pending, p)
		}
	}
	return nil
}

// hasArrived asks the place's event, unless one before it on its stream is late.
func (m *Meter) hasArrived(p *place) (bool, error) {
	if slices.Contains(m.late, p.stream) {
		return false, nil
	}
	done, err := p.arrived.Done()
	switch {
	case err != nil:
	case done:
		err = m.witness.HostAtRest(p.host)
	default:
		m.late = append(m.late, p.stream)
	}
	return done, err
}

// arrive shows the value, if it is newer than the one that is shown.
func (m *Meter) arrive(p *place) {
	if m.newest == nil && p.number > 0 {
		m.newest = p
		return
	}
	if m.newest != nil && p.number > m.newest.number {
		p, m.newest = m.newest, p
	}
	m.free = append(m.free, p)
}

// Latest returns the newest value that has arrived and the number of its Push,
// counted from 1 over those taken; 0 before the first. It never waits. The value is
// the caller's own; ReadLatest is Latest without an allocation.
func (m *Meter) Latest() (value []byte, number int64, err error) {
	value = make([]byte, m.bytes)
	number, err = m.ReadLatest(value)
	if number == 0 {
		value = nil
	}
	return value, number, err
}

// ReadLatest copies into value, which has the values' length, what Latest returns, and
// leaves it as it is before the first has arrived.
func (m *Meter) ReadLatest(value []byte) (number int64, err error) {
	if int64(len(value)) != m.bytes {
		return 0, fmt.Errorf("prefetch: Meter.ReadLatest: %d bytes, want %d", len(value), m.bytes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return 0, ErrClosed
	}
	if err := m.settle(); err != nil || m.newest == nil {
		return 0, err
	}
	copy(value, m.newest.host)
	return m.newest.number, nil
}

// Close waits for the values under way, for five seconds at most, and frees the
// meter. After that, and after an error of the device, the memory is left as it is and
// the error says so; it is freed if the device's work ends later. A Close during another
// waits for it and returns its error, one after it returns nil.
func (m *Meter) Close() error {
	return m.closed.do(func() error {
		m.mu.Lock()
		m.closing = true // nothing is submitted from here on
		m.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), defaultCloseTimeout)
		defer cancel()
		err := m.rest(ctx)
		if err == nil {
			err = m.release()
			if deviceEnded(err) {
				err = fmt.Errorf("prefetch: Meter.Close: %w", ended(err, "Meter", false))
			}
			return err
		}
		if ctx.Err() != nil {
			go func() { // the reaper: it ends when the device's work does
				if m.rest(context.Background()) == nil {
					_ = m.release()
				}
			}()
		}
		return fmt.Errorf("prefetch: Meter.Close: values may still be under way, nothing was freed: %w", err)
	})
}

// rest waits until nothing writes to the places any more.
func (m *Meter) rest(ctx context.Context) error {
	for _, p := range m.pending {
		if err := p.arrived.Synchronize(ctx); err != nil {
			return err
		}
	}
	for _, p := range m.doubt {
		if err := rest(ctx, p.stream); err != nil {
			return err
		}
	}
	m.witness.Tell()
	return nil
}

func (m *Meter) release() error {
	errs := make([]error, 0, len(m.places)+1)
	for _, p := range m.places {
		errs = append(errs, p.arrived.Close())
	}
	return errors.Join(append(errs, m.host.Close())...)
}
