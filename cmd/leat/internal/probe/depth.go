package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/feed"
	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/pipeline"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// depths are those that are tried; hostSlots the pinned slots, few since producers
// are never behind, and of a large batch fewer.
var depths = []int{1, 2, 3, 4}

const (
	hostSlots    = 4
	minHostSlots = 2
)

// pipelineTime is how long a run of the pipeline is to last, in about as many
// batches as that takes.
const pipelineTime = 150 * time.Millisecond

// measurePipeline runs the stated batch and step through the prefetch API, whose
// producers cost nothing here, at every depth.
func (p *probe) measurePipeline(ctx context.Context, _ *rig.Rig) error {
	size := (p.Options.Bytes + 7) &^ 7
	deepest := units.Bytes(depths[len(depths)-1])
	if size*minHostSlots > p.host || size*deepest > p.memory {
		p.skip("a pipeline of batches of %v: this process may pin %v, and half of the device's free memory is %v", size, p.host, p.memory)
		return nil
	}
	p.Pipeline = Pipeline{Bytes: size, Compute: p.Compute}
	err := p.part(ctx, "a batch's copy", func(ctx context.Context, r *rig.Rig) (err error) {
		p.Pipeline.Copy, err = p.copyTime(ctx, r, size)
		return err
	})
	if err != nil {
		return err
	}
	var last time.Duration
	for i, depth := range depths {
		if i > 0 && p.late(last) {
			p.skip("the pipeline at depth %d and deeper: %s", depth, p.why())
			break
		}
		start := time.Now()
		err := p.part(ctx, fmt.Sprintf("the pipeline at depth %d", depth), func(ctx context.Context, r *rig.Rig) error {
			return p.measureDepth(ctx, r, depth)
		})
		if err != nil {
			return err
		}
		last = time.Since(start)
	}
	return nil
}

// copyTime is the time of a batch's copy, alone.
func (p *probe) copyTime(ctx context.Context, r *rig.Rig, size units.Bytes) (time.Duration, error) {
	c, host := p.newCopies(r, size), r.AllocHost(int64(p.run(size)), device.HostOptions{})
	if r.Err() != nil {
		return 0, r.Err()
	}
	feed.Random(host)
	d, err := c.time(ctx, p.Runs, c.h2d(host, size))
	return d / time.Duration(p.run(size)/size), err
}

func (p *probe) measureDepth(ctx context.Context, r *rig.Rig, depth int) error {
	expected := max(p.Pipeline.Copy, p.Compute, 1)
	batches := int(min(max(16, pipelineTime/expected), 256))
	data := feed.NewStamped(batches, int64(p.Pipeline.Bytes))
	pipe, err := pipeline.New(r, data, 1, loader.Options{},
		prefetch.Options{Depth: depth, BatchesPerCopy: 1, Memory: prefetch.Memory{HostSlots: hostSlots, MinHostSlots: minHostSlots}})
	if err != nil {
		return err
	}
	start := time.Now()
	_, err = pipe.Verify(ctx, func(at prefetch.Position, _ int) uint64 { return data.Sum(int(at.First)) })
	if err != nil {
		return err
	}
	var steps []time.Duration
	for range p.runs(min(p.Runs, 3), time.Since(start)) {
		run, err := pipe.Epoch(ctx, pipe.Spin(p.Compute))
		if err != nil {
			return err
		}
		steps = append(steps, run.Step)
	}
	p.Pipeline.Depths = append(p.Pipeline.Depths, Depth{Depth: depth, Step: measure.Median(steps)})
	return nil
}
