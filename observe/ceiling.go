package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/prefetch"
)

// Ceiling is how long a step takes with data for free: pf is a pipeline of a loader.Replay,
// and step what the loop does with a batch. It takes a tenth of steps more before it looks at
// the clock, and waits for the device at both ends. step works on whatever the batches hold:
// a model that is trained by it has learnt from a few batches many times.
func Ceiling(ctx context.Context, pf *prefetch.Prefetcher, steps int, step func(prefetch.Batch) error) (time.Duration, error) {
	if steps < 1 {
		return 0, fmt.Errorf("observe: Ceiling: %d steps, want 1 or more", steps)
	}
	warm := 1 + steps/10
	var began time.Time
	n := 0
	for batch, err := range pf.All(ctx) {
		if err == nil {
			err = step(batch)
		}
		if err != nil {
			return 0, err
		}
		switch n++; n {
		case warm:
			if err := settle(ctx, batch.Stream()); err != nil {
				return 0, err
			}
			began = time.Now()
		case warm + steps:
			err := settle(ctx, batch.Stream())
			return time.Since(began) / time.Duration(steps), err
		}
	}
	return 0, errors.New("observe: Ceiling: the data came to an end; loader.Replay's does not")
}

// settle waits for a stream, if there is one.
func settle(ctx context.Context, s *device.Stream) error {
	if s == nil {
		return nil
	}
	return s.Synchronize(ctx)
}

// Against says how the steps are, of which one would take so long with data for free.
func (s *Snapshot) Against(ceiling time.Duration) string {
	if s.Host.Steps == 0 {
		return "Nothing was delivered yet."
	}
	if ceiling <= 0 {
		return fmt.Sprintf("A step with data for free can't take %v.", ceiling)
	}
	now := s.Host.Parts.Sum() / time.Duration(s.Host.Steps)
	gain := float64(now) / float64(ceiling)
	if gain < 1.02 {
		return fmt.Sprintf("With data for free a step takes %v, and now it takes %v: there is nothing to gain from data that comes faster.", short(ceiling), short(now))
	}
	return fmt.Sprintf("With data for free a step takes %v, and now it takes %v: at best %.2f times as fast.", short(ceiling), short(now), gain)
}
