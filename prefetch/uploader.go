package prefetch

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// upload is the uploader: it joins filled host memory with a free carrier and
// submits the copy. It waits for producers and for carriers, never for the device.
func (r *run) upload() {
	defer close(r.items)
	defer r.putBack()
	defer func() {
		if r.err == nil { // the transform has ended this goroutine
			at, err := r.p.transform.visit.exited()
			r.err = &TransformError{Position: at, Err: err}
		}
	}()
	for {
		end := r.gather()
		if len(r.batches) > 0 {
			if err := r.uploadGathered(); err != nil {
				r.err = err
				return
			}
		}
		switch end {
		case loader.ErrEpochEnd:
			end = r.endEpoch()
		case loader.ErrEnd:
			end = errEpochOver
		}
		if end != nil {
			r.err = end
			return
		}
	}
}

// gather waits for a batch, and takes those behind it that can travel with it: all
// of them lie in one host slot, so that the loader needs no other to fill them. It
// waits for more only while there is something to deliver meanwhile: a batch that is
// filled is not held back for one that may be long in coming.
func (r *run) gather() error {
	p := r.p
	r.batches = append(r.batches[:0], r.beyond...)
	r.beyond = r.beyond[:0]
	for len(r.batches) == 0 || !p.memory.lastPart(r.batches[len(r.batches)-1].Slot.ID) {
		f, err := r.another()
		switch {
		case err == errDrained:
			return nil
		case err != nil:
			return err
		case len(r.batches) > 0 && p.memory.buffer(f.Slot.ID) != p.memory.buffer(r.batches[0].Slot.ID):
			r.beyond = append(r.beyond, f)
			return nil
		}
		r.batches = append(r.batches, f)
	}
	return nil
}

// another waits for a batch; with some gathered no longer than there are items for
// the reader, and then the error is errDrained.
func (r *run) another() (loader.Filled, error) {
	if len(r.batches) == 0 || r.filler.Ready() {
		return r.filler.Next(r.ctx)
	}
	r.drained.arm()
	defer r.drained.disarm()
	if len(r.items) == 0 { // looked at when the reader can see that it is armed
		return loader.Filled{}, errDrained
	}
	return r.filler.Next(&r.drained)
}

// uploadGathered uploads what was gathered, and delivers it.
func (r *run) uploadGathered() (err error) {
	p := r.p
	c, err := r.freeCarrier()
	if err != nil {
		return err
	}
	slots := c.slots[:len(r.batches)]
	for i, s := range slots {
		s.hold(r.batches[i])
		s.move(free, filling)
	}
	r.batches = r.batches[:0]
	first := &slots[0].batch
	host := p.memory.buffer(first.Slot.ID) // the uploader holds these parts from here on
	done := p.memory.upload(host, len(slots))
	r.loaded = 0
	defer func() { // also where the transform ends this goroutine
		if r.loaded == 0 {
			p.memory.doubt(host)
			r.abandon(c, slots)
			return
		}
		if done {
			p.pool.PutAfter(host) // the recycler holds it from here on
		}
		if failed := r.deliverLoaded(c, slots); err == nil {
			err = failed
		}
	}()
	if err := r.submit(c, len(slots), host, done); err != nil {
		if _, told := err.(*TransformError); told { // it says which batch
			return err
		}
		return fmt.Errorf("prefetch: uploading batch %d of epoch %d: %w", first.Batch, first.Epoch, err)
	}
	return nil
}

// submit is the upload in the form that this pipeline has. r.loaded says of how many
// batches it is complete: with an error, too, a transform's.
func (r *run) submit(c *carrier, batches int, host *pinnedpool.Buffer, hostDone bool) (err error) {
	p := r.p
	switch {
	case p.dev == nil:
		var in device.View
		if in, err = p.memory.view(c.slots[0].batch.Slot.ID); err == nil {
			err = p.transformHost(c, in, host)
		}
	case p.transform != nil:
		return p.uploadRaw(c, batches, host, hostDone, &r.loaded)
	default:
		err = p.upload(c, batches, host, hostDone)
	}
	if err == nil {
		r.loaded = batches
	}
	return err
}

// deliverLoaded passes the batches that are loaded to the reader. The others of slots
// have failed.
func (r *run) deliverLoaded(c *carrier, slots []*slot) error {
	p := r.p
	for _, s := range slots[r.loaded:] {
		s.move(filling, free)
	}
	slots = slots[:r.loaded]
	c.load(len(slots))
	p.counters.uploaded(slots, p.layout)
	for _, s := range slots {
		s.move(filling, ready)
	}
	for i, s := range slots {
		if err := r.deliver(s); err != nil {
			for _, s := range slots[i:] {
				p.discard(s)
			}
			return err
		}
	}
	return nil
}

// putBack returns what was gathered and not uploaded.
func (r *run) putBack() {
	for _, f := range append(r.batches, r.beyond...) {
		r.p.memory.Put(f.Slot)
	}
	r.batches, r.beyond = r.batches[:0], r.beyond[:0]
}

// abandon retires a carrier whose upload failed half-way.
func (r *run) abandon(c *carrier, slots []*slot) {
	for _, s := range slots {
		s.move(filling, free)
	}
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.retired = append(r.p.retired, c)
}

// endEpoch delivers an epoch's end. Without a stated number of epochs nobody knows
// whether the next one is wanted, and asking the loader would begin it.
func (r *run) endEpoch() error {
	if err := r.p.recycle(r.p.memory.orphans()); err != nil {
		return err
	}
	if err := r.deliver(nil); err != nil {
		return err
	}
	if r.p.loader.Options().Epochs == 0 {
		return errEpochOver
	}
	return nil
}

// freeCarrier waits for the user to release one.
func (r *run) freeCarrier() (*carrier, error) {
	select {
	case c := <-r.p.free:
		return c, nil
	default:
	}
	start := time.Now()
	defer func() { r.p.counters.waitSlot.Add(int64(time.Since(start))) }()
	select {
	case c := <-r.p.free:
		return c, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// deliver passes a slot, or an epoch's end, to the reader.
func (r *run) deliver(s *slot) error {
	select {
	case r.items <- s:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
