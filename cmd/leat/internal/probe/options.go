package probe

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/cmd/leat/internal/units"
	"github.com/leat-go/leat/device"
)

// Options say what to measure. The zero value is ready to use.
type Options struct {
	// Compute and Bytes are the step and the batch that the advice is for. Both are
	// 0 for 3 ms and for 256 images of 3×224×224 uint8.
	Compute time.Duration
	Bytes   units.Bytes
	// MaxBytes bounds the sizes of copies. 0 means 256 MiB.
	MaxBytes units.Bytes
	// RunBytes is how many bytes copies back to back move in a run at least, each
	// copy from memory of its own. 0 means 64 MiB, more than a processor's cache
	// holds, since what it holds would travel faster than a pipeline's batches.
	RunBytes units.Bytes
	// PinBytes is how much memory is pinned to find its price. 0 means 1 GiB.
	PinBytes units.Bytes
	// Sides are those of the square matrices multiplied, each a multiple of 16. nil
	// means 256 and 1024: one product leaves much of a large GPU idle, one fills it.
	Sides []int
	// Peer is another device, idle too, to which copies are measured. It stays the
	// caller's; nil means that there is none.
	Peer *device.Device
	// Runs is how many runs a median is taken of. 0 means 5.
	Runs int
	// Time is about how long the probe may take: on a slow machine larger sizes and
	// deeper pipelines are left out, and runs, and the report says so. 0 means 15 s.
	Time time.Duration
}

// Validate reports every mistake at once.
func (o Options) Validate() error {
	var errs []error
	if o.Compute < 0 {
		errs = append(errs, fmt.Errorf("Compute is %v, want 0 or more", o.Compute))
	}
	if o.Time < 0 {
		errs = append(errs, fmt.Errorf("Time is %v, want 0 or more", o.Time))
	}
	for _, f := range []struct {
		name  string
		bytes units.Bytes
	}{{"Bytes", o.Bytes}, {"MaxBytes", o.MaxBytes}, {"RunBytes", o.RunBytes}, {"PinBytes", o.PinBytes}} {
		if f.bytes < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 or more", f.name, int64(f.bytes)))
		}
	}
	for i, side := range o.Sides {
		if side < tile || side%tile != 0 {
			errs = append(errs, fmt.Errorf("Sides[%d] is %d, want a multiple of %d", i, side, tile))
		}
	}
	if o.Runs < 0 {
		errs = append(errs, fmt.Errorf("Runs is %d, want 0 or more", o.Runs))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Compute == 0 {
		o.Compute = 3 * time.Millisecond
	}
	if o.Bytes == 0 {
		o.Bytes = 256 * 3 * 224 * 224
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	if o.RunBytes == 0 {
		o.RunBytes = 64 << 20
	}
	if o.PinBytes == 0 {
		o.PinBytes = 1 << 30
	}
	if o.Sides == nil {
		o.Sides = []int{256, 1024}
	}
	if o.Runs == 0 {
		o.Runs = 5
	}
	if o.Time == 0 {
		o.Time = 15 * time.Second
	}
	return o
}
