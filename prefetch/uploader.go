package prefetch

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// uploadAll is the uploader: it joins filled batches with a free slot and submits what brings
// them there. It waits for producers and for slots, and not for the device.
func (r *run) uploadAll() {
	defer close(r.items)
	defer r.putBack()
	defer func() {
		if r.err == nil && r.stages.transform != nil { // no return sets no err: it has ended this goroutine
			at, err := r.stages.transform.visit.exited()
			r.err = &StageError{Stage: inTransform, Position: at, Err: err}
			if failed := r.uploading.err; failed != nil {
				r.err = errors.Join(failed, r.err)
			}
		}
	}()
	for {
		end := r.gather()
		if len(r.gathered) > 0 {
			if err := r.send(); err != nil {
				r.err = err
				return
			}
		}
		switch end {
		case loader.ErrEpochEnd:
			end = r.endEpoch()
		case loader.ErrEnd:
			end = errRunOver
		}
		if end != nil {
			r.err = end
			return
		}
	}
}

// gather waits for a batch, and takes those behind it that can travel with it. It waits
// for more only while there is something to deliver meanwhile: a batch that is filled is
// not held back for one that may be long in coming.
func (r *run) gather() error {
	for len(r.gathered) < r.stages.sizes.options.BatchesPerCopy {
		f, err := r.another()
		switch {
		case err == errDrained:
			return nil
		case err != nil:
			return err
		}
		r.countIdle(&f.Times)
		r.gathered = append(r.gathered, f)
	}
	return nil
}

// countIdle counts how long the producers had nothing to do before a batch got its host
// slot: those before it, of which all are told here in order, were filled.
func (r *run) countIdle(t *loader.Times) {
	idle := t.Asked
	if r.filled.After(idle) {
		idle = r.filled
	}
	if t.Opened.After(idle) {
		r.stages.counters.waitHostSlot.Add(int64(t.Opened.Sub(idle)))
	}
	if t.Filled.After(r.filled) {
		r.filled = t.Filled
	}
}

// another waits for a batch; with some gathered no longer than there are items for the
// reader, and then the error is errDrained.
func (r *run) another() (loader.Filled, error) {
	if len(r.gathered) == 0 || r.batches.Ready() {
		return r.batches.Next(r.ctx)
	}
	r.drained.arm()
	defer r.drained.disarm()
	if len(r.items) == 0 { // looked at when the reader can see that it is armed
		return loader.Filled{}, errDrained
	}
	return r.batches.Next(&r.drained)
}

// send uploads what was gathered, and passes it to the reader.
func (r *run) send() (err error) {
	g := r.stages
	if g.ring == nil { // the consumer reads the pinned buffer itself
		return r.passPinned(g.windows[r.gathered[0].Slot.ID])
	}
	s, waited, err := r.freeSlot()
	if err != nil {
		return err
	}
	windows := s.windows[:len(r.gathered)]
	for i, w := range windows {
		w.set(&r.gathered[i])
		w.shortage = waited
	}
	r.uploading = uploading{}
	defer func() { // also where the transform ends this goroutine
		r.gathered = r.gathered[:0]
		if failed := r.passLoaded(s, windows); err == nil {
			err = failed
		}
	}()
	if err := r.submit(s); err != nil {
		if _, told := err.(*StageError); told { // it says which batch
			return err
		}
		return uploadError(&windows[0].batch, err)
	}
	return nil
}

// submit calls the device, unless Quiesce has it call nothing.
func (r *run) submit(s *slot) error {
	r.stages.calls.Lock()
	defer r.stages.calls.Unlock()
	return r.stages.upload(s, r.gathered, &r.uploading)
}

// passPinned passes a batch to the reader as it lies in its pinned buffer.
func (r *run) passPinned(w *window) error {
	w.set(&r.gathered[0])
	w.step(life.Load)
	r.gathered = r.gathered[:0]
	if err := r.pass(w); err != nil {
		return joined(err, r.stages.discard(w))
	}
	return nil
}

// passLoaded passes the batches that are loaded to the reader. The others of windows have
// failed.
func (r *run) passLoaded(s *slot, windows []*window) (err error) {
	g := r.stages
	for _, w := range windows[r.uploading.loaded:] {
		w.step(life.Fail)
	}
	windows = windows[:r.uploading.loaded]
	if len(windows) == 0 {
		g.ring.back(s, true)
		return nil
	}
	s.load(len(windows))
	g.counters.uploaded(windows)
	for _, w := range windows {
		w.step(life.Load)
	}
	for _, w := range windows {
		if err == nil {
			err = r.pass(w)
		}
		if err != nil {
			err = joined(err, g.discard(w))
		}
	}
	return err
}

// putBack returns what was gathered and not uploaded.
func (r *run) putBack() {
	for _, f := range r.gathered {
		r.stages.pinned.Put(f.Slot)
	}
	r.gathered = r.gathered[:0]
}

// endEpoch passes an epoch's end to the reader. Without a stated number of epochs nobody
// knows whether the next one is wanted, and asking the loader would begin it.
func (r *run) endEpoch() error {
	if err := r.pass(nil); err != nil {
		return err
	}
	if !r.stages.acrossEpochs {
		return errRunOver
	}
	return nil
}

// A shortage is a wait of the uploader, with a batch, for a slot.
type shortage struct {
	from  time.Time
	freed time.Time // from here on a slot was free, but still read
	to    time.Time
}

// freeSlot waits for a slot, and counts for how long the user had all of them.
func (r *run) freeSlot() (s *slot, short shortage, err error) {
	g := r.stages
	if s = g.takeSlot(); s != nil {
		return s, shortage{}, nil
	}
	short.from = time.Now()
	for s == nil && err == nil {
		if short.freed.IsZero() && g.ring.len() > 0 {
			short.freed = time.Now()
		}
		select {
		case <-g.ring.wake:
			s = g.takeSlot()
		case <-r.ctx.Done():
			err = context.Cause(r.ctx)
		}
	}
	short.to = time.Now()
	if short.freed.IsZero() {
		short.freed = short.to
	}
	g.counters.waitSlot.Add(int64(short.freed.Sub(short.from)))
	return s, short, err
}

// takeSlot is the free slot to be filled next, nil if that is to be waited for.
func (g *stages) takeSlot() *slot {
	g.calls.Lock() // it may ask the device
	defer g.calls.Unlock()
	return g.ring.next()
}

// pass passes a batch, or an epoch's end, to the reader.
func (r *run) pass(w *window) error {
	select {
	case r.items <- w:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
