package prefetch

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
	"github.com/leat-go/leat/pinnedpool"
)

// A window is the memory of one batch, used lap after lap: a part of a slot or, for a host
// consumer without a transform, a pinned buffer itself.
//
// Whoever moved it to its state owns its other fields: the uploader while it is filling,
// the user while it is leased.
type window struct {
	id int
	// word is the state, in its lowest bits, and the generation: one word, so that a
	// late Release cannot end a newer lease.
	word    atomic.Uint64
	history life.History

	slot   *slots.Slot        // nil for a pinned buffer
	pinned *pinnedpool.Buffer // the pinned buffer, else nil
	memory device.View        // where the batch is; empty for a host consumer
	host   []byte             // where it is for a host consumer, else nil
	lent   lent
	mark   int // in the timeline, of the copy of its batch

	// The batch that is in it.
	batch       loader.Filled
	substituted []loader.Substitution // of batch, in memory of its own
	way         journal.Way           // how it came here, and
	told        told                  // what a recorder is told of that
	in, out     *extent               // of batch, as the loader filled it and as it is delivered
	like        likes                 // what out has of in, where they are two
	stream      *device.Stream        // the compute stream that the batch was given to
	usedOn      slots.Uses            // the streams of UsedOn; guarded by the slot's lock
}

// newWindow makes a window for batches of these sizes.
func newWindow(id int, z *sizes) *window {
	w := &window{id: id, in: newExtent(z.in), like: z.like}
	w.out = w.in
	if z.out != z.in {
		w.out = newExtent(z.out)
	}
	return w
}

// windowsOf are the windows on a slot of the ring.
func (g *stages) windowsOf(s *slots.Slot) []*window {
	n := g.sizes.options.BatchesPerCopy
	return g.windows[s.ID*n:][:n]
}

const (
	stateBits = 2
	stateMask = 1<<stateBits - 1
)

// state is where the window stands.
func (w *window) state() life.Batch { return life.Batch(w.word.Load() & stateMask) }

// generation counts the leases; a Batch carries the one it was made in.
func (w *window) generation() uint64 { return w.word.Load() >> stateBits }

// lentTo reports whether the lease of that generation lasts (P4).
func (w *window) lentTo(generation uint64) bool {
	return w.word.Load() == generation<<stateBits|uint64(life.Leased)
}

// step and giveBack are the only writers of w.word. Going on after an event that can't
// happen would corrupt training data silently, so it panics. A delivery begins a
// generation.
func (w *window) step(e life.BatchEvent) {
	old := w.word.Load()
	to, possible := life.Batch(old & stateMask).Next(e)
	next := old&^stateMask | uint64(to)
	if e == life.Deliver {
		next += 1 << stateBits
	}
	if !possible || !w.word.CompareAndSwap(old, next) {
		panic(fmt.Sprintf("prefetch: window %d: %v while %v\n%s", w.id, e, w.state(), &w.history))
	}
	w.history.Add(to, w.batch.Epoch, w.batch.Batch)
}

// giveBack ends the lease of that generation, and reports false if it has ended.
func (w *window) giveBack(generation uint64) bool {
	from := generation<<stateBits | uint64(life.Leased)
	to, _ := life.Leased.Next(life.Release)
	if !w.word.CompareAndSwap(from, generation<<stateBits|uint64(to)) {
		return false
	}
	w.history.Add(to, w.batch.Epoch, w.batch.Batch)
	return true
}

// set takes what the loader filled as the window's batch of this lap. way has its wait for
// a slot.
func (w *window) set(f *loader.Filled, way journal.Way) {
	// The list is the loader's again when the pinned buffer is, which may be long before
	// the batch is released.
	w.substituted = append(w.substituted[:0], f.Substituted...)
	w.batch = *f
	w.batch.Substituted = w.substituted
	w.way = way
	w.way.Asked, w.way.Opened, w.way.Overtaken, w.way.Filled = f.Times.Asked, f.Times.Opened, f.Times.Overtaken, f.Times.Filled
	w.way.Staged = w.slot != nil
	w.in.set(f)
	if w.out != w.in {
		w.out.follow(w.in, w.like)
	}
	w.step(life.Fill)
}

func (w *window) position() Position {
	return Position{Epoch: w.batch.Epoch, Batch: w.batch.Batch, First: w.batch.Position}
}
