package lesson

import (
	"errors"
	"fmt"
	"time"
)

// Options are the card, the batches and the streams. The zero value is the lesson
// as it is usually given.
type Options struct {
	// H2D, Compute and D2H are how long a batch takes to copy in, to compute and to
	// copy out. All at zero mean 10, 30 and 10 ms.
	H2D, Compute, D2H time.Duration
	// Batches are the numbers of batches to run, each in every way. nil means 3
	// and 10.
	Batches []int
	// Engines is the number of copy engines: 1 serves both directions in turn, as on
	// many consumer cards, 2 serve one each. 0 means 2.
	Engines int
	// Depth is the number of streams of the last way, each with memory for a batch
	// of its own: so many batches are on the card at once. 0 means 3, one for each
	// stage.
	Depth int
}

// maxBatches is what a line of a terminal can still tell apart.
const maxBatches = 100

// maxTime keeps sums of a run's times far from overflow.
const maxTime = 24 * time.Hour

// Validate reports every mistake at once.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		time time.Duration
	}{{"H2D", o.H2D}, {"Compute", o.Compute}, {"D2H", o.D2H}} {
		if f.time < 0 || f.time > maxTime {
			errs = append(errs, fmt.Errorf("%s is %v, want 0 to %v", f.name, f.time, maxTime))
		}
	}
	for i, n := range o.Batches {
		if n < 1 || n > maxBatches {
			errs = append(errs, fmt.Errorf("Batches[%d] is %d, want 1 to %d", i, n, maxBatches))
		}
	}
	if o.Engines < 0 || o.Engines > 2 {
		errs = append(errs, fmt.Errorf("Engines is %d, want 1 (for both directions) or 2 (one for each)", o.Engines))
	}
	if o.Depth < 0 || o.Depth > maxBatches {
		errs = append(errs, fmt.Errorf("Depth is %d, want 1 to %d", o.Depth, maxBatches))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.serial() == 0 {
		o.H2D, o.Compute, o.D2H = 10*time.Millisecond, 30*time.Millisecond, 10*time.Millisecond
	}
	if o.Batches == nil {
		o.Batches = []int{3, 10}
	}
	if o.Engines == 0 {
		o.Engines = 2
	}
	if o.Depth == 0 {
		o.Depth = 3
	}
	return o
}

// serial is the time of a batch whose stages run one after the other.
func (o Options) serial() time.Duration { return o.H2D + o.Compute + o.D2H }

// busiest is the time of a batch on the engine that has most to do for it.
func (o Options) busiest() time.Duration {
	if o.Engines == 1 {
		return max(o.H2D+o.D2H, o.Compute)
	}
	return max(o.H2D, o.Compute, o.D2H)
}
