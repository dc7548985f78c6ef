package prefetch

import (
	"errors"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// The protocol: every Wait and Record that orders a batch's way is in this file, or,
// of the stages that not every pipeline has, in stages.go. Each is needed:
// protocol_test.go swallows them one by one.
//
//	uploader   upload    copy.Wait(consumed)    (b) compute done → memory may be overwritten
//	                     copy.CopyH2D
//	                     copy.Record(copied)    (c) copy done → host slot may be refilled
//	                     copy.Record(ready)     (a) copy done → compute may read
//	user       handOver  compute.Wait(ready)    (a)
//	           …         the user's work on compute
//	           handBack  compute.Record(consumed) (b)

// upload submits the copy of filled host memory into a free carrier. The uploader
// owns both until it delivers the one and gives the other to the recycler. With
// hostDone nothing more will be copied from the host slot before it is refilled.
func (p *Prefetcher) upload(c *carrier, batches int, host *pinnedpool.Buffer, hostDone bool) error {
	if err := c.waitConsumed(p.copy); err != nil { // (b)
		return err
	}
	if err := p.copyBatches(c, c.memory, batches, host); err != nil {
		return err
	}
	if hostDone {
		if err := p.copy.Record(host.Copied()); err != nil { // (c)
			return err
		}
	}
	return p.copy.Record(c.ready) // (a)
}

// waitConsumed makes stream wait for what used the carrier's last lap. On the first
// lap there is nothing to wait for (P2).
func (c *carrier) waitConsumed(stream *device.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.uses.list {
		u := &c.uses.list[i]
		if err := wrongLap(stream, u.consumed, u.lap); err != nil {
			return err
		}
		if err := u.unlessEnded(stream.Wait(u.consumed)); err != nil { // (b)
			return err
		}
	}
	c.uses.clear()
	return nil
}

// handOver makes work submitted to a compute stream from now on wait until the
// carrier is ready. It is called when a batch is delivered and no sooner (P3), and
// once a lap for each stream: what a stream has waited for it need not wait for again.
func (c *carrier) handOver(stream *device.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.computeOn(stream)
}

// computeOn is handOver; the caller holds c.mu.
func (c *carrier) computeOn(stream *device.Stream) error {
	if c.uses.find(stream) != nil {
		return nil
	}
	if err := c.waitReady(stream); err != nil {
		return err
	}
	u, err := c.uses.of(stream)
	if err == nil {
		u.compute, u.open = true, 1 // until handBack
	}
	return err
}

// useOn is handOver for another stream, whose use ends with the batch's own: it waits
// for each batch anew, which also tells whether there still is such a stream. The
// caller holds c.mu.
func (c *carrier) useOn(s *slot, stream *device.Stream) error {
	again := slices.Contains(s.usedOn, stream)
	if !again && len(s.usedOn) == cap(s.usedOn) {
		return ErrMaxStreams
	}
	if err := c.waitReady(stream); err != nil || again {
		return err
	}
	u, err := c.uses.of(stream)
	if err == nil {
		s.usedOn = append(s.usedOn, stream)
		u.open++ // until endUses
	}
	return err
}

func (c *carrier) waitReady(stream *device.Stream) error {
	if err := wrongLap(stream, c.ready, c.readyLap); err != nil {
		return err
	}
	return stream.Wait(c.ready) // (a)
}

// endUses marks in the streams of a batch's UsedOn where its use ends. The newest
// Record of an event covers the older ones of the same stream, and the stream may be
// gone from here on. The caller holds c.mu.
func (c *carrier) endUses(s *slot) (err error) {
	for _, stream := range s.usedOn {
		err = errors.Join(err, c.uses.find(stream).end())
	}
	s.usedOn = s.usedOn[:0]
	return err
}

// handBack marks in every compute stream that used the carrier where its use ends.
// The caller holds c.mu, and has all of the carrier's batches back.
func (c *carrier) handBack() (err error) {
	for i := range c.uses.list {
		if u := &c.uses.list[i]; u.compute {
			err = errors.Join(err, u.end())
		}
	}
	return err
}

// recycle gives host slots to the recycler behind all copies submitted so far.
func (p *Prefetcher) recycle(buffers []*pinnedpool.Buffer) error {
	for i, b := range buffers {
		if err := p.copy.Record(b.Copied()); err != nil { // (c)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.uncertain = append(p.uncertain, buffers[i:]...)
			return err
		}
		p.pool.PutAfter(b)
	}
	return nil
}
