package prefetch

import (
	"context"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// handOver gives a batch to a compute stream, or waits until a host consumer can read it.
func (r *run) handOver(ctx context.Context, closing <-chan struct{}, w *window) error {
	g := r.stages
	switch {
	case w.slot == nil:
		return w.isolate(g.sizes.out)
	case g.dev != nil:
		return g.giveToCompute(w)
	}
	if err := r.arrived(ctx, closing, w.slot.Filled); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	if err := g.host.HostWrites(w.host); err != nil { // what the consumer may do
		return err
	}
	return w.isolate(g.sizes.out)
}

// giveToCompute gives a batch to a compute stream, which waits for it. It is called when the
// batch is delivered and no sooner (P3).
func (g *stages) giveToCompute(w *window) error {
	w.stream = g.computes.Next(g.ring)
	if err := g.timeline.Reached(w.stream, w.mark); err != nil {
		return err
	}
	return w.slot.Give(w.stream)
}

// discard takes back a batch that was ready and is not delivered: its memory is free at
// once, since what is written there next is behind the last on the same stream.
func (g *stages) discard(w *window) error {
	w.step(life.Discard)
	if w.slot == nil {
		g.pinned.Put(loader.Slot{ID: w.id})
		return nil
	}
	return g.ring.Return(w.slot, &w.usedOn, false)
}
