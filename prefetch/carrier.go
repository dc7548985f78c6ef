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
	slots    []*slot
	timing   int    // which of the timeline's marks this lap has
	readyLap uint64 // the lap of ready that Waits are to bind to

	mu          sync.Mutex
	uses        uses
	undelivered int  // batches of this lap that are not delivered yet
	left        int  // batches of this lap that are not back yet
	failed      bool // the end of a use could not be marked in this lap
}

// newCarrier makes a carrier. What it could make before an error is in it, for
// release.
func (p *Prefetcher) newCarrier(id int) (*carrier, error) {
	c := &carrier{}
	stride := stride(p.out)
	bytes := stride * int64(p.options.BatchesPerCopy)
	if err := c.allocate(p, bytes); err != nil {
		return c, err
	}
	var err error
	if c.ready, err = p.hostDev.NewEvent(device.EventOptions{BlockingSync: p.dev == nil, Name: fmt.Sprintf("ready %d", id)}); err != nil {
		return c, err
	}
	others := 0 // streams beside the compute streams that may use a batch
	if p.dev != nil {
		others = p.options.MaxStreams - p.options.ComputeStreams
		if err := c.uses.init(p.dev, id, p.options.ComputeStreams+p.options.BatchesPerCopy*others); err != nil {
			return c, err
		}
	}
	for i := range p.options.BatchesPerCopy {
		s := &slot{id: len(p.slots), carrier: c, shapes: shapes(p.out), usedOn: make([]*device.Stream, 0, others)}
		at := int64(i) * stride
		if p.dev != nil {
			s.memory = c.memory.Slice(at, p.out.Size())
		} else {
			s.host = c.host.Bytes()[at : at+p.out.Size()]
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
func stride(l *loader.Layout) int64 { return sum(l.Size(), alignment-1) &^ (alignment - 1) }

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
func (p *Prefetcher) back(s *slot, wasDelivered bool) {
	c := s.carrier
	c.mu.Lock()
	err := c.endUses(s)
	c.left--
	if !wasDelivered {
		c.undelivered--
	}
	last := c.left == 0
	if last {
		err = errors.Join(err, c.handBack())
	}
	c.failed = c.failed || err != nil
	failed := c.failed
	c.mu.Unlock()
	if err != nil {
		p.fail(fmt.Errorf("prefetch: Release: %w", err))
	}
	switch {
	case !last:
	case failed:
		p.retire(c)
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
// submitted for it is unknown. recover takes it back, or after Close the reaper.
func (p *Prefetcher) retire(c *carrier) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaping {
		p.reapCarrier(c)
		return
	}
	p.retired = append(p.retired, c)
}

// fail ends the run with an error that came up outside of it.
func (p *Prefetcher) fail(err error) {
	p.keep(err)
	p.cancelRun(err)
}

// renew makes a carrier that was out of use, and has come to rest, as good as new.
func (c *carrier) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses.clear()
	for _, s := range c.slots {
		s.usedOn = s.usedOn[:0]
	}
	c.failed = false
}

// rest waits until the streams have passed the point where the carrier's use ends.
func (c *carrier) rest(ctx context.Context) error {
	c.mu.Lock()
	used := append([]use(nil), c.uses.list...)
	c.mu.Unlock()
	for i := range used {
		if err := used[i].rest(ctx); err != nil {
			return err
		}
	}
	return nil
}

// release gives the carrier's memory and events back.
func (c *carrier) release() error {
	errs := []error{c.uses.release()}
	if c.ready != nil {
		errs = append(errs, c.ready.Close())
	}
	if c.buffer != nil {
		errs = append(errs, c.buffer.Close())
	}
	if c.host != nil {
		errs = append(errs, c.host.Close())
	}
	return errors.Join(errs...)
}
