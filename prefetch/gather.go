package prefetch

import (
	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
)

// gather waits for a batch, and takes those behind it that can travel with it. It waits
// for more only while there is something to deliver meanwhile: a batch that is filled is
// not held back for one that may be long in coming.
func (r *run) gather() error {
	for len(r.gathered) < r.stages.sizes.options.BatchesPerCopy {
		f, err := r.another()
		switch {
		case err == hold.ErrAlarm:
			return nil
		case err != nil:
			return err
		}
		r.countIdle(&f.Times)
		r.gathered = append(r.gathered, f)
	}
	return nil
}

// another waits for a batch; with some gathered no longer than there are items for the
// reader, and then the error is hold.ErrAlarm.
func (r *run) another() (loader.Filled, error) {
	if len(r.gathered) == 0 || r.batches.Ready() {
		return r.batches.Next(r.ctx)
	}
	r.drained.Arm()
	defer r.drained.Disarm()
	if len(r.items) == 0 { // looked at when the reader can see that it is armed
		return loader.Filled{}, hold.ErrAlarm
	}
	return r.batches.Next(&r.drained)
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

// putBack returns what was gathered and not uploaded.
func (r *run) putBack() {
	for _, f := range r.gathered {
		r.stages.pinned.Put(f.Slot)
	}
	r.gathered = r.gathered[:0]
}
