package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/internal/waits"
)

// freeSlot waits for a slot, and counts for how long the user had all of them.
func (r *run) freeSlot() (s *slots.Slot, short waits.Shortage, err error) {
	g := r.stages
	if s = g.takeSlot(); s != nil {
		return s, waits.Shortage{}, nil
	}
	short.From = time.Now()
	for s == nil && err == nil {
		if short.Freed.IsZero() && g.ring.Free() > 0 {
			short.Freed = time.Now()
		}
		select {
		case <-g.ring.Wake:
			s = g.takeSlot()
		case <-r.ctx.Done():
			err = context.Cause(r.ctx)
		}
	}
	short.To = time.Now()
	if short.Freed.IsZero() {
		short.Freed = short.To
	}
	g.counters.waitSlot.Add(int64(short.Freed.Sub(short.From)))
	return s, short, err
}

// takeSlot is the free slot to be filled next, nil if that is to be waited for.
func (g *stages) takeSlot() *slots.Slot {
	g.calls.Lock() // it may ask the device
	defer g.calls.Unlock()
	return g.ring.Next()
}
