package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/pinnedpool"
)

const (
	recycledCopy   = time.Millisecond
	recycledCopies = 500
	recyclerSlots  = 4
	recyclerGoal   = 2 // percent of a core
)

// measureRecycler measures the processor time of the recycler, which waits on the
// host for copies of a millisecond each. It can't be told from that of the
// goroutine that submits the copies, so the figure is of both, and above the
// recycler's own: the process does nothing else meanwhile.
func (b *bench) measureRecycler(ctx context.Context) error {
	if b.dev.Properties().Kind == "cpu" {
		b.skip("recycler: the CPU device's copies take the processor's time themselves")
		return nil
	}
	const sample = 64 << 20
	copying, err := b.copyTime(ctx, sample)
	if err != nil {
		return err
	}
	bytes := int64(units.RateOf(sample, copying)*units.Rate(recycledCopy.Seconds())) &^ 7
	return b.on(func(r *rig.Rig) error {
		s, memory := r.Stream("copy"), r.Alloc(bytes)
		if r.Err() != nil {
			return r.Err()
		}
		pool, err := pinnedpool.New(b.dev, pinnedpool.Options{Slots: recyclerSlots, SlotBytes: bytes})
		if err != nil {
			return err
		}
		r.Owns(func() error { return pool.Close(context.Background()) })
		t := Target{Name: "recycler/cpu", Unit: "% of a core"}
		for range b.Runs {
			share, wall, err := recycle(ctx, pool, s, memory)
			if err != nil {
				return err
			}
			t.Runs = append(t.Runs, 100*share)
			t.Detail = fmt.Sprintf("with the submitting goroutine; a copy every %s", units.Time(wall/recycledCopies))
		}
		t.Value = measure.Median(t.Runs)
		b.add(t.atMost(recyclerGoal))
		return nil
	})
}

// recycle sends every slot round and round, and returns the processor's time as a
// share of the clock's.
func recycle(ctx context.Context, pool *pinnedpool.Pool, s *device.Stream, memory device.View) (share float64, wall time.Duration, err error) {
	start := time.Now()
	before, err := measure.CPUTime()
	if err != nil {
		return 0, 0, err
	}
	for range recycledCopies {
		slot, err := pool.Get(ctx)
		if err != nil {
			return 0, 0, err
		}
		if err := errors.Join(s.CopyH2D(memory, slot.Bytes()), s.Record(slot.Copied())); err != nil {
			pool.Quarantine(slot) // the copy may be under way
			return 0, 0, err
		}
		pool.PutAfter(slot)
	}
	if err := pool.Drain(ctx); err != nil {
		return 0, 0, err
	}
	after, err := measure.CPUTime()
	wall = time.Since(start)
	return float64(after-before) / float64(wall), wall, err
}
