package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// A Batch is the lease of a batch's memory: a small value to pass by value. It is valid
// until Release, and in a range until the loop body ends. Using it afterwards panics with
// what has become of the memory, because another batch may be there.
//
// Several goroutines may read a Batch; one of them releases it.
type Batch struct {
	p          *Prefetcher
	window     *window
	generation uint64
}

// Position says which batch of which epoch a Batch is.
type Position struct {
	// Epoch counts from 0.
	Epoch int
	// Batch counts from 0 in each epoch.
	Batch int
	// First is the position of this rank's first sample in the epoch's order. The order
	// tells its index in the dataset: loader.Order.At(First).
	First int64
}

// use is the window, if b is still valid (P4).
func (b Batch) use(method string) *window {
	if b.window == nil {
		panic("prefetch: Batch." + method + " of the zero Batch, which a range yields together with an error: check err first")
	}
	if !b.window.lentTo(b.generation) {
		b.stale(method)
	}
	return b.window
}

func (b Batch) stale(method string) {
	panic(fmt.Sprintf("prefetch: Batch.%s after its release: its loop body has ended, or Release was called; Clone keeps a copy (window %d)\n%s", method, b.window.id, &b.window.history))
}

// Len is the number of rows, at most the batch size.
func (b Batch) Len() int { return b.use("Len").batch.N }

// Valid is the number of rows that are samples of this epoch's own: less than Len
// only where the last batch was padded, and then the padding stands behind them.
func (b Batch) Valid() int { return b.use("Valid").batch.Valid }

// Position says which batch of which epoch it is.
func (b Batch) Position() Position {
	return b.use("Position").position()
}

// Substituted lists the positions whose samples failed and were replaced. It is
// borrowed.
func (b Batch) Substituted() []loader.Substitution { return b.use("Substituted").batch.Substituted }

// Stream is the compute stream that the batch was given to: the one that waits for its
// copy, and to which the batch's work is submitted. With Options.Streams it is
// not always the stream that New was given. It is nil without a device.
func (b Batch) Stream() *device.Stream { return b.use("Stream").stream }

// Field returns the field of that name. It panics if the layout has none, since
// the names are fixed when the loader is made.
func (b Batch) Field(name string) Field {
	f, ok := b.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q in a batch of %v", name, b.p.stages.sizes.out.Fields()))
	}
	return f
}

// Lookup returns the field of that name, if there is one.
func (b Batch) Lookup(name string) (Field, bool) {
	w, l := b.use("Field"), b.p.stages.sizes.out
	i, ok := l.Lookup(name)
	if !ok {
		return Field{}, false
	}
	return w.field(i), true
}

// Fields returns all fields in the layout's order, and behind them those that the loader
// added for ragged ones. It allocates.
func (b Batch) Fields() []Field {
	w := b.use("Fields")
	fields := make([]Field, len(w.out.shapes))
	for i := range fields {
		fields[i] = w.field(i)
	}
	return fields
}

func (w *window) field(i int) Field { return w.out.field(i, w.memory, w.host) }

// Release ends the lease. The streams that use the batch go on: its memory is overwritten
// when they have passed the point at which Release was called. It panics if the lease has
// ended already; of two calls at once one does.
func (b Batch) Release() {
	b.use("Release")
	if !b.window.giveBack(b.generation) {
		b.stale("Release")
	}
	b.p.released(b.window)
}

// Of reports whether it is a batch of p's, released or not. It may be asked at any time.
func (b Batch) Of(p *Prefetcher) bool { return p != nil && b.p == p }

// Released reports whether the lease has ended, by Release or with the body of a range. It
// may be asked at any time.
func (b Batch) Released() bool { return b.window == nil || !b.window.lentTo(b.generation) }

// end is Release for a loop body that may have released the batch itself.
func (b Batch) end() {
	if b.window.giveBack(b.generation) {
		b.p.released(b.window)
	}
}

// released follows the end of a lease: from here on the memory is the uploader's, or the
// producers', as soon as all that shares it is back.
func (p *Prefetcher) released(w *window) {
	w.withdraw()
	if w.slot == nil {
		p.stages.pinned.Put(loader.Slot{ID: w.id})
	} else if err := errors.Join(p.stages.timeline.finish(w, len(p.stages.computes.Streams)), p.stages.ring.Return(w.slot, &w.usedOn, true)); err != nil {
		p.ahead.fail(fmt.Errorf("prefetch: Release: %w", err))
	}
	if p.ahead.life.must(life.TakeBack).Freed() {
		p.ahead.notes.keep(p.freeLast())
	}
}
