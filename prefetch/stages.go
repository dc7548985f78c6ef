package prefetch

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// The edges of the stages that not every pipeline has; protocol.go has the three of all.
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
//
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

// uploadRaw is upload with a transform behind the copy. Where that fails, or ends the
// goroutine, the batches before the one that it fails for are loaded all the same.
func (p *Prefetcher) uploadRaw(c *carrier, batches int, host *pinnedpool.Buffer, hostDone bool, loaded *int) (err error) {
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
	defer func() {
		if *loaded == 0 {
			return
		}
		if failed := t.transformed(c, raw); failed != nil {
			*loaded, err = 0, failed
		}
	}()
	return t.apply(c, raw.memory, batches, loaded)
}

// transformed marks behind a carrier's transform what is read and what is ready.
func (t *transforming) transformed(c *carrier, raw *raw) error {
	if err := t.stream.Record(raw.read); err != nil { // (e)
		return err
	}
	raw.used = true
	return t.stream.Record(c.ready) // (a)
}

// transformHost is upload for a host consumer with a transform, which reads the
// host slot itself: there is no copy, and the consumer waits for ready on the host.
func (p *Prefetcher) transformHost(c *carrier, in device.View, host *pinnedpool.Buffer) error {
	var done int
	if err := p.transform.apply(c, in, 1, &done); err != nil {
		return err
	}
	if err := p.transform.stream.Record(host.Copied()); err != nil { // (c)
		return err
	}
	return p.transform.stream.Record(c.ready) // (a)
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
