package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/slots"
)

// A shortage is a wait of the uploader, with a batch, for a slot.
type shortage struct {
	from  time.Time
	freed time.Time // from here on a slot was free, but still read
	to    time.Time
}

// freeSlot waits for a slot, and counts for how long the user had all of them.
func (r *run) freeSlot() (s *slots.Slot, short shortage, err error) {
	g := r.stages
	if s = g.takeSlot(); s != nil {
		return s, shortage{}, nil
	}
	short.from = time.Now()
	for s == nil && err == nil {
		if short.freed.IsZero() && g.ring.Free() > 0 {
			short.freed = time.Now()
		}
		select {
		case <-g.ring.Wake:
			s = g.takeSlot()
		case <-r.ctx.Done():
			err = context.Cause(r.ctx)
		}
	}
	short.to = time.Now()
	if short.freed.IsZero() {
		short.freed = short.to
	}
	g.counters.waitSlot.Add(int64(short.freed.Sub(short.from)))
	return s, short, err
}

// takeSlot is the free slot to be filled next, nil if that is to be waited for.
func (g *stages) takeSlot() *slots.Slot {
	g.calls.Lock() // it may ask the device
	defer g.calls.Unlock()
	return g.ring.Next()
}
