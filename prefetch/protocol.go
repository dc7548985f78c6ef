package prefetch

import (
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

// waitConsumed makes stream wait for compute's use of the carrier's last lap. On
// the first lap there is nothing to wait for (P2).
func (c *carrier) waitConsumed(stream *device.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, consumed := range c.consumed[:c.consumers] {
		if err := wrongLap(stream, consumed, c.consumedLap[i]); err != nil {
			return err
		}
		if err := stream.Wait(consumed); err != nil { // (b)
			return err
		}
	}
	c.consumers = 0
	return nil
}

// handOver makes work submitted to stream from now on wait until the carrier is
// ready. It is called when a batch is delivered and no sooner (P3), and once a lap
// for each stream: what a stream has waited for it need not wait for again. It
// leaves room for those of expected that are to come.
func (c *carrier) handOver(stream *device.Stream, expected []*device.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.users, stream) {
		return nil
	}
	room := cap(c.users) - len(c.users)
	for _, s := range expected {
		if s != stream && !slices.Contains(c.users, s) {
			room--
		}
	}
	if room < 1 {
		return errMaxStreams
	}
	if err := wrongLap(stream, c.ready, c.readyLap); err != nil {
		return err
	}
	if err := stream.Wait(c.ready); err != nil { // (a)
		return err
	}
	c.users = append(c.users, stream)
	return nil
}

// handBack marks in every stream that used the carrier where its use ends. The
// caller holds c.mu, and has all of the carrier's batches back.
func (c *carrier) handBack() error {
	for i, stream := range c.users {
		if err := stream.Record(c.consumed[i]); err != nil { // (b)
			return err
		}
		c.consumedLap[i] = c.consumed[i].Records()
		c.consumers = i + 1
	}
	c.users = c.users[:0]
	return nil
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
