package prefetch

import (
	"bytes"
	"fmt"

	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// In a build with the tag invariants a host consumer gets each batch in memory of its
// own, which is poison from its Release on and never used again: a slice or a tensor
// that was kept shows NaN or -1 for good, rather than another batch's numbers, and a
// write to it is found at the window's next lease.

// lent is the memory of the newest lease, and the window's own.
type lent struct{ memory, own []byte }

// isolate gives the window's batch memory of its own.
func (w *window) isolate(l *loader.Layout) error {
	if !invariants.Enabled || w.host == nil {
		return nil
	}
	for i, is := range w.lent.memory {
		if is != poisonByte {
			w.lent.memory = nil // it is told once
			at, where := w.position(), "between the fields"
			if place, ok := placeOf(l, int64(i)); ok {
				where = place
			}
			return fmt.Errorf("prefetch: %s, before batch %d of epoch %d: %w", where, at.Batch, at.Epoch,
				&pinnedpool.OverwriteError{Buffer: w.id, Offset: int64(i)})
		}
	}
	w.lent = lent{memory: bytes.Clone(w.host), own: w.host}
	w.host = w.lent.memory
	return nil
}

// withdraw ends what isolate has given.
func (w *window) withdraw() {
	if !invariants.Enabled || w.host == nil {
		return
	}
	for i := range w.lent.memory {
		w.lent.memory[i] = poisonByte
	}
	w.host = w.lent.own
}
