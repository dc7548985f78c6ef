package prefetch

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// A carrier is what one upload fills: device memory for Options.BatchesPerCopy
// batches, one in the usual case, with the events that order its use. Its slots
// are leased one by one; when the last is back, so is the carrier.
type carrier struct {
	buffer   *device.Buffer     // with a device
	host     *device.HostBuffer // for a host consumer with a transform
	memory   device.View
	ready    *device.Event
	consumed []*device.Event // one for each stream that may use it
	slots    []*slot
	timing   int // which of the timeline's marks this lap has
	// The laps of the events that Waits are to bind to.
	readyLap    uint64
	consumedLap []uint64

	mu          sync.Mutex
	users       []*device.Stream // who uses it in this lap; its capacity is MaxStreams
	consumers   int              // how many of consumed were recorded in the last lap
	undelivered int              // batches of this lap that are not delivered yet
	left        int              // batches of this lap that are not back yet
}

// newCarrier makes a carrier. What it could make before an error is in it, for
// release.
func (p *Prefetcher) newCarrier(id int) (*carrier, error) {
	c := &carrier{users: make([]*device.Stream, 0, p.options.MaxStreams), consumedLap: make([]uint64, p.options.MaxStreams)}
	stride := stride(p.out)
	bytes := stride * int64(p.options.BatchesPerCopy)
	if err := c.allocate(p, bytes); err != nil {
		return c, err
	}
	var err error
	if c.ready, err = p.hostDev.NewEvent(device.EventOptions{BlockingSync: p.dev == nil, Name: fmt.Sprintf("ready %d", id)}); err != nil {
		return c, err
	}
	for i := range p.options.MaxStreams {
		e, err := p.hostDev.NewEvent(device.EventOptions{Name: fmt.Sprintf("consumed %d.%d", id, i)})
		if err != nil {
			return c, err
		}
		c.consumed = append(c.consumed, e)
	}
	for i := range p.options.BatchesPerCopy {
		s := &slot{id: len(p.slots), carrier: c, shapes: shapes(p.out)}
		at := int64(i) * stride
		if p.dev != nil {
			s.memory = c.memory.Slice(at, p.out.Bytes())
		} else {
			s.host = c.host.Bytes()[at : at+p.out.Bytes()]
			s.tensors = make([]tensors, len(s.shapes))
		}
		c.slots = append(c.slots, s)
		p.slots = append(p.slots, s)
	}
	return c, nil
}

func (c *carrier) allocate(p *Prefetcher, bytes int64) (err error) {
	if p.dev != nil {
		if c.buffer, err = p.dev.Alloc(bytes); err == nil {
			c.memory = c.buffer.View()
			c.buffer.Describe(describeSlots(c, p.out))
		}
		return err
	}
	if c.host, err = p.hostDev.AllocHost(bytes, device.HostOptions{}); err == nil {
		c.memory, err = c.host.View()
		c.host.Describe(describeSlots(c, p.out))
	}
	return err
}

// alignment of a batch in a slot of several, that of a device allocation.
const alignment = 256

// stride is the distance of two batches that lie together.
func stride(l *loader.Layout) int64 { return (l.Bytes() + alignment - 1) &^ (alignment - 1) }

// load begins a lap with batches, which the uploader has just filled in.
func (c *carrier) load(batches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undelivered, c.left = batches, batches
	c.readyLap++
}

// delivered notes that one of the carrier's batches is the user's.
func (c *carrier) delivered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undelivered--
}

// held reports whether the user has all that will be delivered of this lap.
func (c *carrier) held() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.undelivered == 0 && c.left > 0
}

// back notes that a batch is done with. The last one hands the carrier back, and
// only when that has returned is it the uploader's (P1).
func (p *Prefetcher) back(c *carrier, wasDelivered bool) {
	c.mu.Lock()
	c.left--
	if !wasDelivered {
		c.undelivered--
	}
	last := c.left == 0
	var err error
	if last {
		err = c.handBack()
	}
	c.mu.Unlock()
	switch {
	case !last:
	case err != nil:
		p.retire(c, fmt.Errorf("prefetch: Release: %w", err))
	default:
		p.returnCarrier(c)
	}
}

// returnCarrier makes a carrier the uploader's again, or after Close has it reaped.
func (p *Prefetcher) returnCarrier(c *carrier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaping {
		p.reapCarrier(c)
		return
	}
	p.free <- c // it holds every carrier: this never blocks
}

// retire takes a carrier out of use on which an operation failed: what was
// submitted for it is unknown. The run ends with err, and recover takes the
// carrier back.
func (p *Prefetcher) retire(c *carrier, err error) {
	p.keep(err)
	p.mu.Lock()
	p.retired = append(p.retired, c)
	r := p.run
	p.mu.Unlock()
	if r != nil {
		r.cancel(err)
	}
}

// rest waits until the streams have passed the point where the carrier's use ends.
func (c *carrier) rest(ctx context.Context) error {
	c.mu.Lock()
	consumed := c.consumed[:c.consumers]
	c.mu.Unlock()
	for _, e := range consumed {
		if err := e.Synchronize(ctx); err != nil {
			return err
		}
	}
	return nil
}

// release gives the carrier's memory and events back.
func (c *carrier) release() error {
	errs := make([]error, 0, 3+len(c.consumed))
	if c.ready != nil {
		errs = append(errs, c.ready.Close())
	}
	for _, e := range c.consumed {
		errs = append(errs, e.Close())
	}
	if c.buffer != nil {
		errs = append(errs, c.buffer.Free())
	}
	if c.host != nil {
		errs = append(errs, c.host.Free())
	}
	return errors.Join(errs...)
}
