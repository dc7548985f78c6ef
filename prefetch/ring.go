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
// device. Where several do, the copy into a slot whose reader takes long would hold up all
// copies behind it. So the uploader takes the first slot that the streams have done with,
// and if there is none the slots are watched on the host.
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
	g := &ring{slots: slots, wake: make(chan struct{}, 1), free: make([]*slot, 0, len(slots))}
	if computes > 1 {
		g.watch = &watch{}
	}
	g.free = append(g.free, slots...)
	return g
}

// next is the free slot to be taken, nil if that is to be waited for.
func (g *ring) next() *slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := 0
	if g.watch != nil {
		i = slices.IndexFunc(g.free, (*slot).isRead)
	}
	if i < 0 || len(g.free) == 0 {
		for _, s := range g.free {
			g.watch.ask(s)
		}
		return nil
	}
	s := g.free[i]
	g.free = slices.Delete(g.free, i, i+1)
	return s
}

func (g *ring) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// back makes a slot free, or takes it out of use if it has failed.
func (g *ring) back(s *slot, failed bool) {
	if orphan := g.put(s, failed); orphan != nil {
		orphan(s)
	}
}

// put is back, if the ring is not retired; else it returns who takes the slot.
func (g *ring) put(s *slot, failed bool) (orphan func(*slot)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.orphan != nil:
		return g.orphan
	case failed:
		g.failed = append(g.failed, s)
	default:
		g.free = append(g.free, s)
		g.signal()
	}
	return nil
}

// takeFailed takes the slots that are out of use, for readmit when they have come to rest.
func (g *ring) takeFailed() []*slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	failed := g.failed
	g.failed = nil
	return failed
}

// retire takes the slots that are back. From here on orphan gets those that come back.
func (g *ring) retire(orphan func(*slot)) []*slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.orphan = orphan
	back := append(g.free, g.failed...)
	g.free, g.failed = nil, nil
	return back
}

// keep keeps a slot that could not be closed yet.
func (g *ring) keep(s *slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, s)
}

// len is the number of free slots.
func (g *ring) len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.free)
}

// held reports whether the user has all that is in every slot.
func (g *ring) held() bool {
	for _, s := range g.slots {
		if !s.held() {
			return false
		}
	}
	return true
}

// release closes every slot; nothing has run yet.
func (g *ring) release() error {
	var errs []error
	for _, s := range g.slots {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
