package prefetch

import (
	"errors"
	"slices"
	"sync"
)

// A ring is the slots of a stage, of which those that are free wait for the uploader.
//
// Where one stream reads them, slots are free in the order in which the stream has done
// with them, and the uploader takes the first without asking: the copy waits on the
// device. A stream of UsedOn may take longer, and the copy into its slot would hold up all
// copies behind it: so that slot is passed over while there is another. Where several
// compute streams read, the uploader takes the first slot that they all have done with, and
// if there is none the slots are watched on the host.
type ring struct {
	slots []*slot
	wake  chan struct{} // holds a token when a slot has come back, or was read
	watch *watch        // nil with one compute stream

	mu     sync.Mutex
	free   []*slot     // in the order in which they came back
	failed []*slot     // out of use until they have come to rest
	orphan func(*slot) // takes what comes back once the ring is retired; nil before
}

func newRing(slots []*slot, computes int) *ring {
	r := &ring{slots: slots, wake: make(chan struct{}, 1), free: make([]*slot, 0, len(slots))}
	if computes > 1 {
		r.watch = &watch{}
	}
	r.free = append(r.free, slots...)
	return r
}

// next is the free slot to be taken, nil if that is to be waited for.
func (r *ring) next() *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return nil
	}
	i := 0
	switch {
	case r.watch != nil:
		i = slices.IndexFunc(r.free, (*slot).isRead)
	case len(r.free) > 1: // there is a choice
		i = max(0, slices.IndexFunc(r.free, (*slot).isReadByOthers))
	}
	if i < 0 {
		for _, s := range r.free {
			r.watch.ask(s)
		}
		return nil
	}
	s := r.free[i]
	r.free = slices.Delete(r.free, i, i+1)
	return s
}

func (r *ring) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// back makes a slot free, or takes it out of use if it has failed.
func (r *ring) back(s *slot, failed bool) {
	if orphan := r.put(s, failed); orphan != nil {
		orphan(s)
	}
}

// put is back, if the ring is not retired; else it returns who takes the slot.
func (r *ring) put(s *slot, failed bool) (orphan func(*slot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.orphan != nil:
		return r.orphan
	case failed:
		r.failed = append(r.failed, s)
	default:
		r.free = append(r.free, s)
		r.signal()
	}
	return nil
}

// takeFailed takes the slots that are out of use, for readmit when they have come to rest.
func (r *ring) takeFailed() []*slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := r.failed
	r.failed = nil
	return failed
}

// retire takes the slots that are back. From here on orphan gets those that come back.
func (r *ring) retire(orphan func(*slot)) []*slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orphan = orphan
	back := append(r.free, r.failed...)
	r.free, r.failed = nil, nil
	return back
}

// keep keeps a slot that could not be closed yet.
func (r *ring) keep(s *slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, s)
}

// len is the number of free slots.
func (r *ring) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.free)
}

// held reports whether the user has all that is in every slot.
func (r *ring) held() bool {
	for _, s := range r.slots {
		if !s.held() {
			return false
		}
	}
	return true
}

// release closes every slot; nothing has run yet.
func (r *ring) release() error {
	var errs []error
	for _, s := range r.slots {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
