package prefetch

import (
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/slots"
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
	computes     slots.Computes // none without a device
	feed         feed           // how batches reach slots: pinned
	pinned       *pinned
	memory       loader.Memory // where workers write: pinned, and how they come near it
	near         int           // how many of them do
	transform    *transforming // nil without a transform
	ring         *slots.Ring   // of device slots, or of a transform's output; nil without either
	windows      []*window     // of all batches that can be delivered
	timeline     timeline
	counters     counters
	acrossEpochs bool // producers go on behind an epoch's end, since there is a stated number

	// calls is held by the uploader while it calls the device, and by Quiesce.
	calls hold.Gate
}

// The way of a batch, and the edges that order it. protocol_test.go leaves them out one
// by one.
//
//	uploader   slot.BeginWrite  copies.Wait(read)      overwrite after read
//	           feed.fill        copies.CopyH2D
//	                            copies.Record(copied)  refill after copied
//	           slot.EndWrite    copies.Record(filled)  read after filled
//	Next       slot.Give        compute.Wait(filled)
//	           …                the user's work on compute
//	Release    ring.Return      compute.Record(read)   overwrite after read
//
// With a transform the copy goes into a slot of its own, raw, which the transform's stream
// reads; it is the one that writes the slot that compute reads.

// An uploading is how far an upload has come. It is no result of functions, since a
// transform may end the goroutine, and then none are returned.
type uploading struct {
	mark    int       // of the copy in the timeline
	copying time.Time // when the copy was submitted and a transform's calls began, if anybody is told
	loaded  int       // how many batches have all of their work submitted
	err     error     // why none have of those that a transform was done to
}

// upload submits the work that brings batches into a free slot.
func (g *stages) upload(to *slots.Slot, batches []loader.Filled, up *uploading) (err error) {
	switch {
	case g.dev == nil:
		return g.uploadToHost(to, batches[0], up)
	case g.transform != nil:
		return g.uploadRaw(to, batches, up)
	}
	if up.mark, err = g.copyInto(to, batches); err != nil {
		return err
	}
	up.loaded = len(batches)
	return nil
}

// copyInto submits the copies of batches into a slot.
func (g *stages) copyInto(to *slots.Slot, batches []loader.Filled) (mark int, err error) {
	if err := to.BeginWrite(g.copies); err != nil {
		g.feed.doubt(batches)
		return 0, err
	}
	if mark, err = g.timeline.Start(g.copies); err != nil {
		g.feed.doubt(batches)
		return 0, err
	}
	if err := g.feed.fill(g.copies, to.Memory, batches); err != nil {
		return 0, err
	}
	if err := g.timeline.Copied(g.copies, mark); err != nil {
		return 0, err
	}
	return mark, to.EndWrite(g.copies)
}
