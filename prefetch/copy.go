package prefetch

import (
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

// copyBatches copies the batches that the carrier's first slots hold from host
// memory to a device. Full batches that lie together go in one copy, all fields of
// a batch being packed. A short one goes field by field, so that no stale tail
// travels with it.
func (p *Prefetcher) copyBatches(c *carrier, to device.View, batches int, host *pinnedpool.Buffer) error {
	if err := p.timeline.copyStarts(p.copy, c); err != nil {
		return err
	}
	if p.pageable {
		p.copying.Store(true)
		defer p.copying.Store(false)
	}
	from := host.Bytes()
	for i := 0; i < batches; {
		run := p.together(c.slots[i:batches])
		var err error
		if run == 0 {
			err = p.copyFields(c.slots[i], to.Slice(int64(i)*p.stride, p.layout.Size()), from)
			run = 1
		} else {
			n := int64(run-1)*p.stride + p.layout.Size()
			at := p.memory.offset(c.slots[i].batch.Slot.ID)
			err = p.copy.CopyH2D(to.Slice(int64(i)*p.stride, n), from[at:at+n])
		}
		if err != nil {
			return err
		}
		i += run
	}
	return p.timeline.copyEnds(p.copy, c)
}

// together is how many of the slots, from the first, hold full batches that lie
// one behind the other in host memory.
func (p *Prefetcher) together(slots []*slot) int {
	for i, s := range slots {
		if s.rows != p.layout.BatchSize() || s.batch.Slot.ID != slots[0].batch.Slot.ID+i {
			return i
		}
	}
	return len(slots)
}

func (p *Prefetcher) copyFields(s *slot, to device.View, from []byte) error {
	from = from[p.memory.offset(s.batch.Slot.ID):]
	for _, f := range p.layout.Fields() {
		n := int64(s.rows) * f.RowBytes
		if err := p.copy.CopyH2D(to.Slice(f.Offset, n), from[f.Offset:f.Offset+n]); err != nil {
			return err
		}
	}
	return nil
}
