package probe

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
)

// graphKernels is how many short kernels make a step.
const graphKernels = 64

// measureGraph times a step of short kernels from its first call to its end on the device:
// launched one by one, and replayed as a graph.
func (p *probe) measureGraph(ctx context.Context, r *rig.Rig) error {
	s, v := r.Stream("graph"), r.Alloc(256)
	if r.Err() != nil {
		return r.Err()
	}
	step := func() error {
		return measure.Repeat(graphKernels, func() error { return kernels.Fill(s, v, dtype.Float32, 1) })()
	}
	g, err := s.Capture(step)
	if errors.Is(err, device.ErrUnsupported) {
		p.skip("graphs: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.Owns(g.Close)
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	r.Owns(x.Close)
	result := Graph{Kernels: graphKernels}
	for _, way := range []struct {
		took   *time.Duration
		submit func() error
	}{{&result.Launched, step}, {&result.Replayed, func() error { return x.Launch(s) }}} {
		var took []time.Duration
		for n := 2; len(took) < n; {
			start := time.Now()
			if err := errors.Join(way.submit(), s.Synchronize(ctx)); err != nil {
				return err
			}
			if took = append(took, time.Since(start)); len(took) == 2 {
				n = 1 + p.runs(4*p.Runs, took[1])
			}
		}
		*way.took = measure.Median(took[1:]) // the first warmed up
	}
	p.Graph = result
	return nil
}
