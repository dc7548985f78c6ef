package prefetch

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/invariants"
)

// In a build with the tag invariants the memory that a Transform or a Map's step is to
// write is filled with poison first, in stream order: what it leaves out is NaN or -1,
// rather than the numbers of an earlier batch.

const poisonByte = 0xff

// poison fills what Apply is to write, and the scratch, which holds nothing before its
// own work.
func (t *transforming) poison(out Fields) error {
	if err := poisonMemory(t.stream, out.memory); err != nil || t.scratch == nil {
		return err
	}
	return poisonMemory(t.stream, t.scratch.buffer.View())
}

func poisonMemory(s *device.Stream, v device.View) error {
	if !invariants.Enabled {
		return nil
	}
	return s.Memset(v, poisonByte)
}
