package slots

import (
	"slices"
	"sync"
)

// A Ring is the slots of a stage, of which those that are free wait for the uploader.
//
// Where one stream reads them, slots are free in the order in which the stream has done
// with them, and the uploader takes the first without asking: the copy waits on the
// device. A stream of UsedOn may take longer, and the copy into its slot would hold up all
// copies behind it: so that slot is passed over while there is another. Where several
// compute streams read, the uploader takes the first slot that they all have done with, and
// if there is none the slots are watched on the host.
type Ring struct {
	slots []*Slot
	Wake  chan struct{} // who waits for a slot receives from it and tries again: a slot has come back, or was read
	watch *watch        // nil with one compute stream

	mu     sync.Mutex
	free   []*Slot     // in the order in which they came back
	failed []*Slot     // out of use until they have come to rest
	orphan func(*Slot) // takes what comes back once the ring is retired; nil before
}

// NewRing makes a ring of slots that are all free, to be read by so many compute streams.
func NewRing(slots []*Slot, computes int) *Ring {
	r := &Ring{slots: slots, Wake: make(chan struct{}, 1), free: make([]*Slot, 0, len(slots))}
	if computes > 1 {
		r.watch = &watch{}
	}
	r.free = append(r.free, slots...)
	return r
}

// Next is the free slot to be taken, nil if that is to be waited for.
func (r *Ring) Next() *Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return nil
	}
	i := 0
	switch {
	case r.watch != nil:
		i = slices.IndexFunc(r.free, (*Slot).isRead)
	case len(r.free) > 1: // there is a choice
		i = max(0, slices.IndexFunc(r.free, (*Slot).isReadByOthers))
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

// Signal wakes who waits for a slot.
func (r *Ring) Signal() {
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// Back makes a slot free, or takes it out of use if it has failed.
func (r *Ring) Back(s *Slot, failed bool) {
	if orphan := r.put(s, failed); orphan != nil {
		orphan(s)
	}
}

// put is Back, if the ring is not retired; else it returns who takes the slot.
func (r *Ring) put(s *Slot, failed bool) (orphan func(*Slot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.orphan != nil:
		return r.orphan
	case failed:
		r.failed = append(r.failed, s)
	default:
		r.free = append(r.free, s)
		r.Signal()
	}
	return nil
}
