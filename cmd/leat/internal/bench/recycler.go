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
// host for copies of a millisecond each. The process does nothing else meanwhile
// but submit the copies, which is in the figure. What is not is the time that Go's
// scheduler takes in any process that wakes up so often: it is measured by itself,
// with a goroutine that waits for a ticker and does nothing.
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
		pool, err := pinnedpool.New(b.dev, recyclerSlots, bytes, pinnedpool.Options{})
		if err != nil {
			return err
		}
		r.Owns(func() error { return pool.Close(context.Background()) })
		t := Target{Name: "recycler", Unit: "% of a core"}
		for range b.Runs {
			waking, err := share(func() error { return wake(ctx) })
			if err != nil {
				return err
			}
			all, err := share(func() error { return recycle(ctx, pool, s, memory) })
			if err != nil {
				return err
			}
			t.Runs = append(t.Runs, 100*(all-waking))
			t.Detail = fmt.Sprintf("%.1f%% in all, less %.1f%% for waking every millisecond; copies of %v", 100*all, 100*waking, units.Bytes(bytes))
		}
		t.Value = measure.Median(t.Runs)
		b.add(t.atMost(recyclerGoal))
		return nil
	})
}

// share is the processor's time during f as a share of the clock's.
func share(f func() error) (float64, error) {
	start := time.Now()
	before, err := measure.CPUTime()
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := measure.CPUTime()
	return float64(after-before) / float64(time.Since(start)), err
}

// wake wakes up as often as recycle does.
func wake(ctx context.Context) error {
	ticker := time.NewTicker(recycledCopy)
	defer ticker.Stop()
	for range recycledCopies {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// recycle sends the slots round and round.
func recycle(ctx context.Context, pool *pinnedpool.Pool, s *device.Stream, memory device.View) error {
	for range recycledCopies {
		slot, err := pool.Get(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(s.CopyH2D(memory, slot.Bytes()), s.Record(slot.Copied())); err != nil {
			pool.Quarantine(slot) // the copy may be under way
			return err
		}
		pool.PutAfter(slot)
	}
	return pool.Drain(ctx)
}
