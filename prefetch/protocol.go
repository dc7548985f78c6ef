package prefetch

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// The protocol: every Wait and Record that orders a batch's way is in this file,
// and each is needed (protocol_test.go swallows them one by one).
//
//	uploader   upload    copy.Wait(consumed)    (b) compute done → memory may be overwritten
//	                     copy.CopyH2D
//	                     copy.Record(copied)    (c) copy done → host slot may be refilled
//	                     copy.Record(ready)     (a) copy done → compute may read
//	user       handOver  compute.Wait(ready)    (a)
//	           …         the user's work on compute
//	           handBack  compute.Record(consumed) (b)
//
// A transform stands between the copy and compute. The copy then goes into a raw
// buffer, and (a) and (b) bind compute to the transform instead:
//
//	                     copy.Wait(read)        (e) transform done → raw may be overwritten
//	                     copy.CopyH2D
//	                     copy.Record(copied)    (c)
//	                     copy.Record(filled)    (d) copy done → transform may read
//	                     transform.Wait(filled) (d)
//	                     transform.Wait(consumed) (b)
//	                     transform.…            reads raw, writes the carrier
//	                     transform.Record(read) (e)
//	                     transform.Record(ready) (a)

// Results come back over a ring of the same kind, whose stream is download:
//
//	Map's step   …       the user's work on compute
//	             fetch   compute.Record(written) (f) compute done → download may read
//	                     download.Wait(written) (f)
//	                     download.CopyD2H
//	                     download.Record(fetched) (g) download done → the host may read
//	waiter       wait    fetched.Synchronize    (g)
//
// The host has seen (g) before a result's memory is free again, on the device too.

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

// uploadRaw is upload with a transform behind the copy.
func (p *Prefetcher) uploadRaw(c *carrier, batches int, host *pinnedpool.Buffer, hostDone bool) error {
	t, raw := p.transform, p.transform.next()
	if raw.used { // on its first lap nobody has read it
		if err := p.copy.Wait(raw.read); err != nil { // (e)
			return err
		}
	}
	if err := p.copyBatches(c, raw.memory, batches, host); err != nil {
		return err
	}
	if hostDone {
		if err := p.copy.Record(host.Copied()); err != nil { // (c)
			return err
		}
	}
	if err := p.copy.Record(raw.filled); err != nil { // (d)
		return err
	}
	if err := t.stream.Wait(raw.filled); err != nil { // (d)
		return err
	}
	if err := c.waitConsumed(t.stream); err != nil { // (b)
		return err
	}
	if err := t.apply(c, raw.memory, batches); err != nil {
		return err
	}
	if err := t.stream.Record(raw.read); err != nil { // (e)
		return err
	}
	raw.used = true
	return t.stream.Record(c.ready) // (a)
}

// transformHost is upload for a host consumer with a transform, which reads the
// host slot itself: there is no copy, and the consumer waits for ready on the host.
func (p *Prefetcher) transformHost(c *carrier, in device.View, host *pinnedpool.Buffer) error {
	if err := p.transform.apply(c, in, 1); err != nil {
		return err
	}
	if err := p.transform.stream.Record(host.Copied()); err != nil { // (c)
		return err
	}
	return p.transform.stream.Record(c.ready) // (a)
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
// for each stream: what a stream has waited for it need not wait for again.
func (c *carrier) handOver(stream *device.Stream) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, user := range c.users {
		if user == stream {
			return nil
		}
	}
	if len(c.users) == cap(c.users) {
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

// fetch submits the download of what compute's work so far has written.
func (r *result) fetch(compute, download *device.Stream) error {
	if err := compute.Record(r.written); err != nil { // (f)
		return err
	}
	if err := download.Wait(r.written); err != nil { // (f)
		return err
	}
	if err := r.copyBack(download); err != nil {
		return err
	}
	return download.Record(r.fetched) // (g)
}
