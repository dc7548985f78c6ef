package prefetch

import (
	"context"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
)

// uploadAll is the uploader: it joins filled batches with a free slot and submits what brings
// them there. It waits for producers and for slots, and not for the device.
func (r *run) uploadAll() {
	defer close(r.items)
	defer r.putBack()
	defer r.unlessReturned()
	r.stages.timeline.begins(journal.Uploader)
	for {
		end := r.gather() // as many batches as are filled, and as fit in a slot
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

// send uploads what was gathered into a free slot, and passes it to the reader.
func (r *run) send() (err error) {
	g := r.stages
	if g.ring == nil { // the consumer reads the pinned buffer itself
		return r.passPinned(g.windows[r.gathered[0].Slot.ID])
	}
	s, way, err := r.freeSlot()
	if err != nil {
		return err
	}
	windows := g.windowsOf(s)[:len(r.gathered)]
	for i, w := range windows {
		w.set(&r.gathered[i], way)
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
func (r *run) submit(s *slots.Slot) error {
	r.stages.calls.Lock()
	defer r.stages.calls.Unlock()
	return r.stages.upload(s, r.gathered, &r.uploading)
}

// passLoaded passes the batches that are loaded to the reader. The others of windows have
// failed.
func (r *run) passLoaded(s *slots.Slot, windows []*window) (err error) {
	g := r.stages
	for _, w := range windows[r.uploading.loaded:] {
		w.step(life.Fail)
	}
	windows = windows[:r.uploading.loaded]
	if len(windows) == 0 {
		g.ring.Back(s, true)
		return nil
	}
	s.Load(len(windows))
	g.timeline.sent(g.counters.uploads.Load(), s.ID, windows, &r.uploading)
	g.counters.uploaded(windows)
	for _, w := range windows {
		w.mark = r.uploading.mark
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

// pass passes a batch, or an epoch's end, to the reader.
func (r *run) pass(w *window) error {
	select {
	case r.items <- w:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}
