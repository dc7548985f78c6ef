package probe

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/measure"
	"github.com/leat-go/leat/cmd/leat/internal/rig"
	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

const (
	// runTime is what a run is to take at least: short products are repeated.
	runTime = 2 * time.Millisecond
	// tooLong is what a product may not take.
	tooLong     = 200 * time.Millisecond
	mostRepeats = 64
)

// measureProducts computes two products on one stream and on two.
func (p *probe) measureProducts(ctx context.Context, _ *rig.Rig) error {
	for _, side := range p.Sides {
		if n := len(p.Products); n > 0 {
			before := p.Products[n-1]
			growth := float64(side) / float64(before.Side)
			if one := time.Duration(float64(before.One) / 2 * growth * growth * growth); one > tooLong {
				p.skip("products of %d×%d matrices: one would take %s", side, side, units.Time(one))
				continue
			} else if p.late(8 * one) {
				p.skip("products of %d×%d matrices: %s", side, side, p.why())
				continue
			}
		}
		err := p.part(ctx, fmt.Sprintf("products of %d×%d matrices", side, side), func(ctx context.Context, r *rig.Rig) error {
			return p.measureProduct(ctx, r, side)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *probe) measureProduct(ctx context.Context, r *rig.Rig, side int) error {
	pair := measure.NewPair(r)
	watch := measure.NewStopwatch(r, pair.A)
	x, y := newMatrices(r, side), newMatrices(r, side)
	if r.Err() != nil {
		return r.Err()
	}
	for _, m := range []*matrices{x, y} {
		if err := m.upload(pair.A); err != nil {
			return err
		}
	}
	once, err := watch.Median(ctx, 1, func() error { return x.multiply(pair.A) })
	if err != nil {
		return err
	}
	repeats := int(min(max(1, runTime/max(once, 1)), mostRepeats))
	runs := p.runs(p.Runs, 4*once*time.Duration(repeats)) // of two products, twice
	on := func(m *matrices, s *device.Stream) func() error {
		return measure.Repeat(repeats, func() error { return m.multiply(s) })
	}
	one, err := watch.Median(ctx, runs, func() error {
		if err := on(x, pair.A)(); err != nil {
			return err
		}
		return on(y, pair.A)()
	})
	if err != nil {
		return err
	}
	alone, err := products(ctx, pair.A, x, y)
	if err != nil {
		return fmt.Errorf("on one stream: %w", err)
	}
	two, err := watch.Median(ctx, runs, func() error { return pair.Both(on(x, pair.A), on(y, pair.B)) })
	if err != nil {
		return err
	}
	beside, err := products(ctx, pair.A, x, y)
	if err != nil {
		return fmt.Errorf("on two streams: %w", err)
	}
	if !bytes.Equal(alone, beside) {
		return fmt.Errorf("two streams gave another result than one")
	}
	p.Products = append(p.Products, Product{
		Side: side, One: one / time.Duration(repeats), Two: two / time.Duration(repeats),
		SpeedUp: float64(one) / float64(max(two, 1)),
	})
	return nil
}

// products are the results of all, checked, and taken off the device so that the
// next have to be computed anew.
func products(ctx context.Context, s *device.Stream, of ...*matrices) ([]byte, error) {
	var all []byte
	for _, m := range of {
		c, err := m.take(ctx, s)
		if err != nil {
			return nil, err
		}
		if err := m.verify(c); err != nil {
			return nil, err
		}
		all = append(all, c...)
	}
	return all, nil
}
