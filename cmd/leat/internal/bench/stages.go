package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const (
	stagesBatches  = 64
	stagesRatio    = 1.5 // of compute to a copy
	stagesGoal     = 1.02
	bothWays       = 1.65 // times one way alone
	stampBytes     = 8
	stagesMostSize = 64 << 20
)

// measureStages sends results back beside uploads and compute, by Map. With compute
// the longest stage the total is compared with that stage's sum, and the others
// once; without compute the two directions together with one alone. Each result
// carries its batch's number, which is checked.
func (b *bench) measureStages(ctx context.Context) error {
	size := min(b.Sizes[0], stagesMostSize)
	in, err := b.copyTime(ctx, int64(size))
	if err != nil {
		return err
	}
	return b.on(func(r *rig.Rig) error {
		data := feed.NewStamped(stagesBatches, int64(size))
		ld, err := loader.New(data, 1, loader.Options{Workers: b.Workers})
		if err != nil {
			return err
		}
		compute := r.Stream("compute")
		out, err := b.downloadTime(ctx, r, int64(size))
		if err != nil {
			return err
		}
		pf, err := prefetch.New(compute, ld, prefetch.Options{Depth: b.Depth, BatchesPerCopy: 1})
		if err != nil {
			return err
		}
		r.Owns(pf.Close)
		spin := time.Duration(stagesRatio * float64(max(in, out)))
		watch, scratch := measure.NewStopwatch(r, compute), r.Alloc(2*stampBytes)
		if r.Err() != nil {
			return r.Err()
		}
		steps, err := watch.Median(ctx, b.Runs, measure.Repeat(stagesBatches, func() error {
			return work(compute, scratch.Slice(0, stampBytes), scratch.Slice(stampBytes, stampBytes), spin)
		}))
		if err != nil {
			return err
		}
		step := steps / stagesBatches
		ideal := stagesBatches*step + in + out
		three := Target{Name: "stages/three", Unit: "of the ideal",
			Detail: fmt.Sprintf("%v in %s, compute %s, out %s", size, units.Time(in), units.Time(step), units.Time(out))}
		both := Target{Name: "stages/both-directions", Unit: "times one alone"}
		for i := range b.Runs + 1 { // the first makes the ring and is not counted
			long, err := mapEpoch(ctx, pf, data, spin)
			if err != nil {
				return err
			}
			short, err := mapEpoch(ctx, pf, data, 0)
			if err != nil {
				return err
			}
			if i > 0 {
				three.Runs = append(three.Runs, float64(long)/float64(ideal))
				both.Runs = append(both.Runs, stagesBatches*float64(in+out)/float64(short))
				both.Detail = fmt.Sprintf("%v together", units.RateOf(2*stagesBatches*size, short))
			}
		}
		three.Value, both.Value = measure.Median(three.Runs), measure.Median(both.Runs)
		b.add(three.atMost(stagesGoal))
		b.add(both.atLeast(bothWays))
		return nil
	})
}

// mapEpoch runs an epoch whose steps take spin and give back as much as they get,
// and returns the time from its beginning to the last result on the host.
func mapEpoch(ctx context.Context, pf *prefetch.Prefetcher, data *feed.Stamped, spin time.Duration) (time.Duration, error) {
	step := func(b prefetch.Batch, out prefetch.Fields) error {
		return work(b.Stream(), out.Field("batch").View.Slice(0, stampBytes), b.Field("batch").View.Slice(0, stampBytes), spin)
	}
	start := time.Now()
	n := 0
	for r, err := range pf.Map(ctx, prefetch.Output{Fields: data.Fields()}, step) {
		if err != nil {
			return 0, err
		}
		if got := binary.LittleEndian.Uint64(r.Field("batch").Bytes); got != uint64(n) {
			return 0, fmt.Errorf("result %d came back as that of batch %d", n, got)
		}
		n++
	}
	if n != data.Len() {
		return 0, fmt.Errorf("%d results came back, want %d", n, data.Len())
	}
	return time.Since(start), nil
}

// work is a step's: it takes spin, and passes the batch's number on.
func work(s *device.Stream, out, in device.View, spin time.Duration) error {
	if spin > 0 {
		if err := kernels.Spin(s, spin); err != nil {
			return err
		}
	}
	return s.CopyD2D(out, in)
}

// downloadTime is copyTime in the other direction.
func (b *bench) downloadTime(ctx context.Context, r *rig.Rig, bytes int64) (time.Duration, error) {
	s, memory := r.Stream("download"), r.Alloc(bytes)
	host := r.AllocHost(buffers*bytes, device.HostOptions{})
	watch := measure.NewStopwatch(r, s)
	if r.Err() != nil {
		return 0, r.Err()
	}
	i := int64(0)
	took, err := watch.Median(ctx, b.Runs, measure.Repeat(stagesBatches, func() error {
		i = (i + 1) % buffers
		return s.CopyD2H(host[i*bytes:(i+1)*bytes], memory)
	}))
	return took / stagesBatches, err
}
