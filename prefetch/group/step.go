package group

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/prefetch"
)

// A Step is the lease of one batch on every device: a small value to pass by value. It is
// valid until Release, and in a range until the loop body ends.
type Step struct {
	// Batches has the part of each device, in the order of New's streams. It is borrowed. A
	// batch may be released before the others, or used on streams of other devices too; see
	// prefetch.Batch.UsedOn.
	Batches []prefetch.Batch

	of  *gathered
	lap uint64
}

// gathered is the batches of a step, or as many as there are of the one to come.
type gathered struct {
	group   *Group
	batches []prefetch.Batch
	lap     atomic.Uint64 // odd while it is leased
}

// Position says which step of which epoch it is, by the first device's batch.
func (s Step) Position() prefetch.Position { return s.first("Position").Position() }

// Len is the number of rows on all devices.
func (s Step) Len() int {
	s.first("Len")
	rows := 0
	for _, b := range s.Batches {
		rows += b.Len()
	}
	return rows
}

// Valid is the number of rows on all devices that are samples of this epoch's own, and not
// padding.
func (s Step) Valid() int {
	s.first("Valid")
	rows := 0
	for _, b := range s.Batches {
		rows += b.Valid()
	}
	return rows
}

func (s Step) first(method string) prefetch.Batch {
	if s.of == nil {
		panic("group: Step." + method + " of the zero Step, which a range yields together with an error: check err first")
	}
	if s.of.lap.Load() != s.lap {
		panic(fmt.Sprintf("group: Step.%s after its release: its loop body has ended, or Release was called", method))
	}
	return s.Batches[0]
}

// Release ends the leases of all its batches that were not released one by one. Like a
// batch's, it panics if the lease has ended already.
func (s Step) Release() {
	s.first("Release")
	if !s.end() {
		s.first("Release") // another goroutine was faster
	}
}

// end is Release for a loop body that may have released the step itself.
func (s Step) end() bool {
	if !s.of.lap.CompareAndSwap(s.lap, s.lap+1) {
		return false
	}
	s.of.release()
	s.of.group.put(s.of)
	return true
}

// lend is one turn of a loop; break, return and panic end the lease too.
func (s Step) lend(yield func(Step, error) bool) bool {
	defer s.end()
	return yield(s, nil)
}

// release releases the batches that are not.
func (s *gathered) release() {
	for _, b := range s.batches {
		if !b.Released() {
			b.Release()
		}
	}
	s.batches = s.batches[:0]
}

// take is a step that nobody holds.
func (g *Group) take() *gathered {
	g.mu.Lock()
	defer g.mu.Unlock()
	if last := len(g.free) - 1; last >= 0 {
		s := g.free[last]
		g.free = g.free[:last]
		return s
	}
	return &gathered{group: g, batches: make([]prefetch.Batch, 0, len(g.members))}
}

func (g *Group) put(s *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, s)
}
