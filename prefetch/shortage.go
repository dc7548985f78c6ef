package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/observe/journal"
)

// freeSlot waits for a slot, and counts for how long the user had all of them. Of the way it
// returns that wait, if there was one.
func (r *run) freeSlot() (s *slots.Slot, way journal.Way, err error) {
	g := r.stages
	if s = g.takeSlot(); s != nil {
		return s, way, nil
	}
	way.Short = time.Now()
	for s == nil && err == nil {
		if way.Freed.IsZero() && g.ring.Free() > 0 {
			way.Freed = time.Now()
		}
		select {
		case <-g.ring.Wake:
			s = g.takeSlot()
		case <-r.ctx.Done():
			err = context.Cause(r.ctx)
		}
	}
	way.Placed = time.Now()
	if way.Freed.IsZero() {
		way.Freed = way.Placed
	}
	g.counters.waitSlot.Add(int64(way.Freed.Sub(way.Short)))
	return s, way, err
}

// takeSlot is the free slot to be filled next, nil if that is to be waited for.
func (g *stages) takeSlot() *slots.Slot {
	g.calls.Lock() // it may ask the device
	defer g.calls.Unlock()
	return g.ring.Next()
}
