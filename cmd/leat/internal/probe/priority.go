package probe

import (
	"context"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/device"
)

// urgentLoad is how many products keep the device busy, on urgentStreams, while another
// one is asked for.
const (
	urgentLoad    = 16
	urgentStreams = 4
)

// measurePriority asks for a product on a busy device, in a stream like all others and in
// one that is served first.
func (p *probe) measurePriority(ctx context.Context, r *rig.Rig) error {
	props := p.dev.Properties()
	if props.LowestPriority == props.HighestPriority {
		p.skip("priorities: the device has none")
		return nil
	}
	side := p.Sides[0] // of the largest product that there was time for
	if n := len(p.Products); n > 0 {
		side = p.Products[n-1].Side
		if took := urgentLoad * p.Products[n-1].One / 2; p.late(2 * took) { // of both priorities
			p.skip("priorities: %s", p.why())
			return nil
		}
	}
	urgent := newMatrices(r, p.Sides[0])
	var busy []*device.Stream
	var load []*matrices
	for range urgentStreams {
		busy = append(busy, r.StreamWith(device.StreamOptions{Name: "busy", Priority: props.LowestPriority}))
		load = append(load, newMatrices(r, side))
	}
	if r.Err() != nil {
		return r.Err()
	}
	var took [2]time.Duration
	for i, priority := range []int{props.LowestPriority, props.HighestPriority} {
		s := r.StreamWith(device.StreamOptions{Name: "urgent", Priority: priority})
		watch := measure.NewStopwatch(r, s)
		if r.Err() != nil {
			return r.Err()
		}
		for _, m := range append(load, urgent) {
			if err := m.upload(s); err != nil {
				return err
			}
		}
		if err := s.Synchronize(ctx); err != nil {
			return err
		}
		var runs []time.Duration
		for n := 1; len(runs) < n; {
			start := time.Now()
			for j := range urgentLoad {
				if err := load[j%urgentStreams].multiply(busy[j%urgentStreams]); err != nil {
					return err
				}
			}
			d, err := watch.Time(ctx, func() error { return urgent.multiply(s) })
			if err != nil {
				return err
			}
			if err := p.dev.Synchronize(ctx); err != nil {
				return err
			}
			if runs = append(runs, d); len(runs) == 1 {
				n = p.runs(p.Runs, 2*time.Since(start)) // of both priorities
			}
		}
		took[i] = measure.Median(runs)
	}
	p.Priority = Priority{Equal: took[0], First: took[1]}
	return nil
}
