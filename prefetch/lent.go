package prefetch

import (
	"bytes"
	"fmt"

	"github.com/leat-go/leat/internal/invariants"
	"github.com/leat-go/leat/pinnedpool"
)

// In a build with the tag invariants a host consumer gets each batch in memory of its
// own, which is poison from its Release on and never used again: a slice or a tensor
// that was kept shows NaN or -1 for good, rather than another batch's numbers, and a
// write to it is found at the slot's next lease.

// lent is the memory of the newest lease, and the slot's own.
type lent struct{ memory, own []byte }

// lend gives the slot's batch memory of its own.
func (p *Prefetcher) lend(s *slot) error {
	if !invariants.Enabled || s.host == nil {
		return nil
	}
	for i, is := range s.lent.memory {
		if is != poisonByte {
			s.lent.memory = nil // it is told once
			at := s.position()
			return fmt.Errorf("prefetch: %s, before batch %d of epoch %d: %w", p.fieldAt(int64(i)), at.Batch, at.Epoch,
				&pinnedpool.OverwriteError{Buffer: s.id, Offset: int64(i)})
		}
	}
	s.lent = lent{memory: bytes.Clone(s.host), own: s.host}
	s.host = s.lent.memory
	return nil
}

// withdraw ends what lend has given.
func (s *slot) withdraw() {
	if !invariants.Enabled || s.host == nil {
		return
	}
	for i := range s.lent.memory {
		s.lent.memory[i] = poisonByte
	}
	s.host = s.lent.own
}

// fieldAt says whose byte of a delivered batch that is.
func (p *Prefetcher) fieldAt(at int64) string {
	for _, f := range p.out.Fields() {
		if n := f.RowBytes * int64(p.out.BatchSize()); at >= f.Offset && at < f.Offset+n {
			return fmt.Sprintf("field %q, row %d", f.Name, (at-f.Offset)/f.RowBytes)
		}
	}
	return "between the fields"
}
