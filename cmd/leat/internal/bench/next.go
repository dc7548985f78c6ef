package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/pipeline"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const (
	nextBatches = 1500
	nextWarm    = 300
	nextBytes   = 16 << 10
	// nextStep is a step's compute, long enough for the next batch to be there when
	// Next is called.
	nextStep = 50 * time.Microsecond

	nextGoal   = 10   // microseconds
	allocsGoal = 0.01 // a batch: the runtime's own, now and then
)

// measureNext measures what a batch costs the user's goroutine, from the call of
// Next to the return of the first launch on the batch. Each step ends before the
// next batch is asked for, which is there then; what Next waited all the same, and
// the Prefetcher counts, is left out. And it measures what a batch allocates.
func (b *bench) measureNext(ctx context.Context) error {
	return b.on(func(r *rig.Rig) error {
		data := feed.NewStamped(nextBatches, nextBytes)
		p, err := pipeline.New(r, data, 1, loader.Options{Workers: b.Workers},
			prefetch.Options{Depth: b.Depth, BatchesPerCopy: 1})
		if err != nil {
			return err
		}
		scratch := r.Alloc(4)
		if r.Err() != nil {
			return r.Err()
		}
		_, err = p.Verify(ctx, func(at prefetch.Position, _ int) uint64 { return data.Sum(int(at.First)) })
		if err != nil {
			return err
		}
		returned := Target{Name: "next/launchable", Unit: "µs", Detail: "from the call of Next to its return; the batch is there"}
		launched := Target{Name: "next/launched", Unit: "µs", Detail: "the same and a kernel's launch, which is the driver's"}
		for range b.Runs {
			next, launch, err := nextEpoch(ctx, p, scratch)
			if err != nil {
				return err
			}
			returned.Runs = append(returned.Runs, next.Seconds()*1e6)
			launched.Runs = append(launched.Runs, launch.Seconds()*1e6)
		}
		returned.Value, launched.Value = measure.Median(returned.Runs), measure.Median(launched.Runs)
		b.add(returned.atMost(nextGoal))
		b.add(launched)
		return b.measureAllocations(ctx, p)
	})
}

// nextEpoch is the median over an epoch's batches: from the call of Next to its
// return, and to that of the first launch.
func nextEpoch(ctx context.Context, p *pipeline.Pipeline, scratch device.View) (next, launch time.Duration, err error) {
	reader, err := p.Open(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer reader.Close() // the epoch is read to its end, and leaves no error
	returned, launched := make([]time.Duration, 0, nextBatches), make([]time.Duration, 0, nextBatches)
	for range nextBatches {
		before := waits(p)
		start := time.Now()
		batch, err := reader.Next(ctx)
		returnedIn := time.Since(start)
		if err == nil {
			err = kernels.Fill(p.Compute, scratch, dtype.Float32, 1)
		}
		launchedIn := time.Since(start)
		if err != nil {
			return 0, 0, err
		}
		waited := waits(p) - before
		returned, launched = append(returned, returnedIn-waited), append(launched, launchedIn-waited)
		if err := kernels.Spin(p.Compute, nextStep); err != nil {
			return 0, 0, err
		}
		batch.Release()
		if err := p.Compute.Synchronize(ctx); err != nil {
			return 0, 0, err
		}
	}
	if _, err := reader.Next(ctx); err != prefetch.ErrEpochEnd {
		return 0, 0, fmt.Errorf("behind the last batch comes %v, want the epoch's end", err)
	}
	return measure.Median(returned[nextWarm:]), measure.Median(launched[nextWarm:]), nil
}

// waits is how long Next has waited so far.
func waits(p *pipeline.Pipeline) time.Duration {
	return p.Stats().Wait()
}

// measureAllocations counts allocations over the batches of an epoch that has
// warmed up: Go's of the whole process, and the device's.
func (b *bench) measureAllocations(ctx context.Context, p *pipeline.Pipeline) error {
	goTarget := Target{Name: "next/go-allocations", Unit: "a batch", Detail: units.Bytes(nextBytes).String() + " a batch, the whole process"}
	devTarget := Target{Name: "next/device-allocations", Unit: "a batch", Detail: "device and pinned memory, streams, events"}
	for range b.Runs {
		var before, after runtime.MemStats
		var beforeDevice int64
		n := 0
		_, err := p.Epoch(ctx, func(prefetch.Batch) error {
			switch n++; n {
			case nextWarm:
				runtime.ReadMemStats(&before)
				beforeDevice = b.dev.Usage().Allocations
			case nextBatches:
				runtime.ReadMemStats(&after)
			}
			return nil
		})
		if err != nil {
			return err
		}
		const counted = nextBatches - nextWarm
		goTarget.Runs = append(goTarget.Runs, float64(after.Mallocs-before.Mallocs)/counted)
		devTarget.Runs = append(devTarget.Runs, float64(b.dev.Usage().Allocations-beforeDevice)/counted)
	}
	goTarget.Value, devTarget.Value = measure.Median(goTarget.Runs), measure.Median(devTarget.Runs)
	b.add(goTarget.atMost(allocsGoal))
	b.add(devTarget.atMost(0))
	return nil
}
