package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/copytime"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
)

// stages is what batches go through on their way to the user, and what that is made of.
// There are three forms of it:
//
//	New                        dev      copies into a ring of device slots
//	NewHost with a Transform   no dev   a ring of slots on the host, which the transform
//	                                    writes from pinned buffers; nothing is copied
//	NewHost                    no dev   no ring: each window is a pinned buffer
type stages struct {
	sizes        sizes
	seed         uint64
	dev          *device.Device // nil without a device
	host         *device.Device // where pinned memory is from
	copies       *device.Stream // nil without a device
	computes     computes       // none without a device
	feed         feed           // how batches reach slots: pinned
	pinned       *pinned
	memory       loader.Memory // where workers write: pinned, and how they come near it
	near         int           // how many of them do
	transform    *transforming // nil without a transform
	ring         *ring         // of device slots, or of a transform's output; nil without either
	windows      []*window     // of all batches that can be delivered
	timeline     copytime.Marks
	counters     counters
	acrossEpochs bool // producers go on behind an epoch's end, since there is a stated number

	// calls is held by the uploader while it calls the device, and by Quiesce.
	calls hold.Gate
}

// The way of a batch, and the edges that order it. protocol_test.go leaves them out one
// by one.
//
//	uploader   slot.beginWrite  copies.Wait(read)      overwrite after read
//	           feed.fill        copies.CopyH2D
//	                            copies.Record(copied)  refill after copied
//	           slot.endWrite    copies.Record(filled)  read after filled
//	Next       slot.beginRead   compute.Wait(filled)
//	           …                the user's work on compute
//	Release    slot.endRead     compute.Record(read)   overwrite after read
//
// With a transform the copy goes into a slot of its own, raw, which the transform's stream
// reads; it is the one that writes the slot that compute reads.

// An uploading is how far an upload has come. It is no result of functions, since a
// transform may end the goroutine, and then none are returned.
type uploading struct {
	loaded int   // how many batches have all of their work submitted
	err    error // why none have of those that a transform was done to
}

// uploadError says of which upload err is.
func uploadError(first *loader.Filled, err error) error {
	return fmt.Errorf("prefetch: uploading batch %d of epoch %d: %w", first.Batch, first.Epoch, err)
}

// upload submits the work that brings batches into a free slot.
func (g *stages) upload(to *slot, batches []loader.Filled, up *uploading) error {
	switch {
	case g.dev == nil:
		return g.uploadToHost(to, batches[0], up)
	case g.transform != nil:
		return g.uploadRaw(to, batches, up)
	}
	if err := g.copyInto(to, batches); err != nil {
		return err
	}
	up.loaded = len(batches)
	return nil
}

// copyInto submits the copies of batches into a slot.
func (g *stages) copyInto(to *slot, batches []loader.Filled) error {
	if err := to.beginWrite(g.copies); err != nil {
		g.feed.doubt(batches)
		return err
	}
	var err error
	if to.mark, err = g.timeline.Start(g.copies); err != nil {
		g.feed.doubt(batches)
		return err
	}
	if err := g.feed.fill(g.copies, to.memory, batches); err != nil {
		return err
	}
	if err := g.timeline.End(g.copies, to.mark); err != nil {
		return err
	}
	return to.endWrite(g.copies)
}

// uploadRaw is upload with a transform behind the copy. Where that fails, or ends the
// goroutine, the batches before the one that it fails for are loaded all the same.
func (g *stages) uploadRaw(to *slot, batches []loader.Filled, up *uploading) (err error) {
	t, raw := g.transform, g.transform.next()
	if err := g.copyInto(raw, batches); err != nil {
		return err
	}
	to.mark = raw.mark
	if err := raw.beginRead(t.stream); err != nil {
		return err
	}
	if err := to.beginWrite(t.stream); err != nil {
		return err
	}
	defer func() {
		if up.loaded == 0 {
			return
		}
		failed := raw.endRead(t.stream)
		if failed == nil {
			failed = to.endWrite(t.stream)
		}
		if failed != nil {
			err = failed
			*up = uploading{err: uploadError(&batches[0], failed)}
		}
	}()
	return t.apply(to, raw.memory, len(batches), &up.loaded)
}

// uploadToHost is upload for a host consumer with a transform, which reads the pinned
// buffer itself: there is no copy, and the consumer waits on the host.
func (g *stages) uploadToHost(to *slot, batch loader.Filled, up *uploading) error {
	t, sent := g.transform, false
	defer func() { // also where the transform ends this goroutine
		if !sent {
			g.feed.doubt([]loader.Filled{batch})
		}
	}()
	in, err := g.feed.view(batch)
	if err != nil {
		return err
	}
	var done int
	if err := t.apply(to, in, 1, &done); err != nil {
		return err
	}
	sent = true
	if err := g.feed.done(t.stream, batch); err != nil {
		return err
	}
	if err := to.endWrite(t.stream); err != nil {
		return err
	}
	up.loaded = 1
	return nil
}
