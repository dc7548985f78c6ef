package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/pipeline"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// measureOverlap compares a run's total with the ideal of two stages without a
// bubble, N·max(copy, compute) + min(copy, compute): the last term is the first
// batch's copy or the last one's compute, whichever nothing runs beside.
//
// The copy's time is that of copies back to back, the compute's that of kernels
// back to back, both of the same run. Producers cost nothing: see feed.Stamped.
func (b *bench) measureOverlap(ctx context.Context) error {
	for _, size := range b.Sizes {
		batches := min(max(overlapped/size, 64), 512)
		goal := 1.03
		if size >= 64<<20 {
			goal = 1.01
		}
		if err := b.overlapOf(ctx, size, int(batches), goal); err != nil {
			return err
		}
	}
	return nil
}

// overlapped is how many bytes a run moves, as far as it is of 64 to 512 batches.
const overlapped units.Bytes = 2 << 30

// ratios are those of compute to copy.
var ratios = []float64{0.5, 1, 1.5, 3}

func (b *bench) overlapOf(ctx context.Context, size units.Bytes, batches int, goal float64) error {
	copying, err := b.copyTime(ctx, int64(size))
	if err != nil {
		return err
	}
	return b.on(func(r *rig.Rig) error {
		data := feed.NewStamped(batches, int64(size))
		p, err := pipeline.New(r, data, 1, loader.Options{Workers: b.Workers},
			prefetch.Options{Depth: b.Depth, BatchesPerCopy: 1})
		if err != nil {
			return err
		}
		watch := measure.NewStopwatch(r, p.Compute)
		if r.Err() != nil {
			return r.Err()
		}
		_, err = p.Verify(ctx, func(at prefetch.Position, _ int) uint64 { return data.Sum(int(at.First)) })
		if err != nil {
			return err
		}
		for _, ratio := range ratios {
			t, err := b.overlapAt(ctx, p, watch, copying, time.Duration(ratio*float64(copying)))
			if err != nil {
				return err
			}
			t.Name = fmt.Sprintf("overlap/batch=%v/ratio=%g", size, ratio)
			b.add(t.atMost(goal))
		}
		return nil
	})
}

func (b *bench) overlapAt(ctx context.Context, p *pipeline.Pipeline, watch measure.Stopwatch, copying, spin time.Duration) (Target, error) {
	n := p.Batches()
	kernels, err := watch.Median(ctx, b.Runs, measure.Repeat(n, func() error { return kernels.Spin(p.Compute, spin) }))
	if err != nil {
		return Target{}, err
	}
	compute := kernels / time.Duration(n)
	ideal := time.Duration(n)*max(copying, compute) + min(copying, compute)
	t := Target{Unit: "of the ideal", Detail: fmt.Sprintf("copy %s, compute %s, %d batches", units.Time(copying), units.Time(compute), n)}
	for range b.Runs {
		run, err := p.Epoch(ctx, p.Spin(spin))
		if err != nil {
			return Target{}, err
		}
		t.Runs = append(t.Runs, float64(run.Total)/float64(ideal))
	}
	t.Value = measure.Median(t.Runs)
	return t, nil
}
