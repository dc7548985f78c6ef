package prefetch

import (
	"errors"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/copytime"
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// stages is what batches go through on their way to the user, and what that is made of.
type stages struct {
	sizes     sizes
	seed      uint64
	dev       *device.Device // nil without a device
	host      *device.Device // where pinned memory is from
	copies    *device.Stream // nil without a device
	computes  computes       // none without a device
	feed      feed           // how batches reach slots: pinned
	pinned    *pinned
	memory    loader.Memory // where workers write: pinned, and how they come near it
	near      int           // how many of them do
	transform *transforming // nil without a transform
	ring      *ring         // of device slots, or of a transform's output; nil without either
	windows   []*window     // the places of all batches that can be delivered
	timeline  copytime.Marks
	counters  counters
	ahead     bool // producers go on behind an epoch's end, since there is a stated number

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
//	Next       slot.open        compute.Wait(filled)
//	           …                the user's work on compute
//	Release    slot.end         compute.Record(read)   overwrite after read
//
// With a transform the copy goes into a slot of its own, raw, which the transform's stream
// reads; it is the one that writes the slot that compute reads.

// upload submits the work that brings batches into a free slot, and counts in loaded
// those for which all of it is submitted.
func (g *stages) upload(to *slot, batches []loader.Filled, loaded *int) error {
	switch {
	case g.dev == nil:
		return g.uploadToHost(to, batches[0], loaded)
	case g.transform != nil:
		return g.uploadRaw(to, batches, loaded)
	}
	if err := g.copyInto(to, batches); err != nil {
		return err
	}
	*loaded = len(batches)
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
func (g *stages) uploadRaw(to *slot, batches []loader.Filled, loaded *int) (err error) {
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
		if *loaded == 0 {
			return
		}
		failed := raw.endRead(t.stream)
		if failed == nil {
			failed = to.endWrite(t.stream)
		}
		if failed != nil {
			*loaded, err = 0, failed
		}
	}()
	return t.apply(to, raw.memory, len(batches), loaded)
}

// uploadToHost is upload for a host consumer with a transform, which reads the pinned
// buffer itself: there is no copy, and the consumer waits on the host.
func (g *stages) uploadToHost(to *slot, batch loader.Filled, loaded *int) error {
	t, sent := g.transform, false
	defer func() { // also where the transform ends this goroutine
		if !sent {
			g.feed.doubt([]loader.Filled{batch})
		}
	}()
	in, err := g.feed.lend(batch)
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
	*loaded = 1
	return nil
}

// handOver gives a batch to a compute stream: work submitted to it from now on waits for
// the batch. It is called when the batch is delivered and no sooner (P3). What a stream
// has waited for it need not wait for again.
func (g *stages) handOver(w *window) error {
	s := w.slot
	w.stream = g.computes.next(g.ring)
	if err := g.timeline.Reached(w.stream, s.mark); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.openWhole(w.stream)
	if err == nil {
		r.batches++
	}
	return err
}

// openWhole is open for a compute stream, whose read lasts until the slot is handed back.
// The caller holds s.mu.
func (s *slot) openWhole(compute *device.Stream) (*read, error) {
	if r := s.reads.by(compute); r != nil {
		return r, nil
	}
	r, err := s.open(compute)
	if err == nil {
		r.whole = true
	}
	return r, err
}

// handBack notes that a batch is done with. The last one hands its slot back, and only
// when that has returned is it the uploader's (P1).
func (g *stages) handBack(w *window, delivered bool) error {
	s := w.slot
	s.mu.Lock()
	err := w.endUses()
	s.left--
	if !delivered {
		s.waiting--
	}
	last := s.left == 0
	if last {
		err = errors.Join(err, s.endWhole())
	}
	s.failed = s.failed || err != nil
	failed := s.failed
	s.mu.Unlock()
	if last {
		g.ring.back(s, failed)
	}
	return err
}

// endWhole marks in every compute stream that read the slot where that ends. The caller
// holds s.mu.
func (s *slot) endWhole() (err error) {
	for i := range s.reads.list {
		if r := &s.reads.list[i]; r.whole {
			err = errors.Join(err, s.end(r))
		}
	}
	return err
}

// discard takes back a batch that was ready and is not delivered: its memory is free at
// once, since what is written there next is behind the last on the same stream.
func (g *stages) discard(w *window) error {
	w.step(life.Discard)
	if w.slot == nil {
		g.pinned.Put(loader.Slot{ID: w.id})
		return nil
	}
	return g.handBack(w, false)
}
