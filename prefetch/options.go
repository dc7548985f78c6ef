package prefetch

import (
	"errors"
	"fmt"
	"time"
)

// Auto is reserved for a depth that adapts itself.
const Auto = -1

// Options tunes a Prefetcher. The zero value is ready to use.
type Options struct {
	// Depth is the number of batches resident on the device. 0 means 3: one in
	// use, one ready, one in flight. 1 disables overlap: the benchmarks' baseline.
	// Not used without a device.
	Depth int
	// HostSlots is the number of pinned host slots, each of one batch. 0 means 8:
	// enough for producers whose pace varies, whatever the workers' number.
	HostSlots int
	// MinHostSlots is how few host slots will do where memory for HostSlots is
	// not to be had. 0 means HostSlots: fewer is an error.
	MinHostSlots int
	// MaxStreams is the number of streams that may use one batch, the compute
	// stream included. 0 means 4.
	MaxStreams int
	// PinnedBytes is the budget for host slots. 0 means a quarter of the memory
	// this process may use.
	PinnedBytes int64
	// DeviceBytes is the budget for device slots. 0 means what the device has free.
	DeviceBytes int64
	// Pageable allows host slots that aren't page-locked where the device refuses
	// to lock memory. Copies from them don't overlap anything.
	Pageable bool
	// Timing measures on the device how long compute waited for copies, by timed
	// events: three more records a batch.
	Timing bool
	// CloseTimeout is how long Close waits for work on the device. 0 means 5 s.
	CloseTimeout time.Duration
}

const (
	defaultDepth        = 3
	defaultHostSlots    = 8
	defaultMaxStreams   = 4
	defaultCloseTimeout = 5 * time.Second
)

func (o Options) validate() error {
	var errs []error
	count := func(name string, v int) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 or more", name, v))
		}
	}
	if o.Depth == Auto {
		errs = append(errs, errors.New("Depth is Auto (-1), which is reserved: want 0 or more"))
	} else {
		count("Depth", o.Depth)
	}
	count("HostSlots", o.HostSlots)
	count("MinHostSlots", o.MinHostSlots)
	count("MaxStreams", o.MaxStreams)
	if full := o.withDefaults(); o.MinHostSlots > full.HostSlots && o.HostSlots >= 0 {
		errs = append(errs, fmt.Errorf("MinHostSlots is %d, want at most HostSlots (%d)", o.MinHostSlots, full.HostSlots))
	}
	if o.PinnedBytes < 0 {
		errs = append(errs, fmt.Errorf("PinnedBytes is %d, want 0 or more", o.PinnedBytes))
	}
	if o.DeviceBytes < 0 {
		errs = append(errs, fmt.Errorf("DeviceBytes is %d, want 0 or more", o.DeviceBytes))
	}
	if o.CloseTimeout < 0 {
		errs = append(errs, fmt.Errorf("CloseTimeout is %v, want 0 or more", o.CloseTimeout))
	}
	return errors.Join(errs...)
}

// withDefaults is o with its zero values replaced.
func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Depth, defaultDepth)
	def(&o.HostSlots, defaultHostSlots)
	def(&o.MaxStreams, defaultMaxStreams)
	if o.CloseTimeout == 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	return o
}
