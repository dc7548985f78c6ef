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
	// Without a device it counts only with a Transform, whose output it holds.
	Depth int
	// HostSlots is the number of pinned host slots, each of one batch, or of
	// BatchesPerCopy. 0 means 8 where a slot is smaller than 1 MiB, and for larger
	// ones as many as make 128 MiB, from 3 to 16. All workers fill one batch together,
	// whatever their number, so that few large slots keep the bus busy, and a ring
	// that fits the processor's cache is read from there: with 38 MB a batch 3 slots
	// reached the bus's own rate and 8 four fifths of it. Small ones pass so fast that
	// it takes more of them to cover the time in which goroutines wake.
	HostSlots int
	// BatchesPerCopy is how many consecutive batches travel in one upload, where
	// the producers are ahead. A slot of Depth and of HostSlots then holds that
	// many. 0 leaves it to New: as many as make 4 MiB on a GPU, whose bus is slow
	// with small copies, within the budgets and the epoch, and 1 elsewhere, with
	// Depth 1, and without a device.
	BatchesPerCopy int
	// Transform, if not nil, is done to every batch on the device before it is
	// delivered, or by the CPU device for a host consumer.
	Transform *Transform `json:"-"`
	// ComputeStreams is how many streams compute on batches side by side: New's own
	// and others that it makes. 0 means 1. Batches are delivered in order; each
	// goes to the next stream that is idle, or else the next in turn: Batch.Stream, and
	// not New's own, is the one to submit its work to.
	ComputeStreams int
	// RoundRobin gives batches to the compute streams in turn, idle or not.
	RoundRobin bool
	// MinHostSlots is how few host slots will do where there is no memory for
	// HostSlots. 0 means HostSlots: fewer is an error.
	MinHostSlots int
	// MaxStreams is the number of streams that may use one batch, all compute
	// streams included: the rest, beyond ComputeStreams, is for UsedOn. 0 means
	// ComputeStreams + 3.
	MaxStreams int
	// PinnedBytes is the budget for host slots and Map's results. 0 means a quarter
	// of the memory this process may use.
	PinnedBytes int64
	// DeviceBytes is the budget for device slots, what a transform needs and Map's
	// results. 0 means what the device has free.
	DeviceBytes int64
	// Pageable allows host slots that aren't page-locked where the device refuses
	// to lock memory. Copies from them don't overlap anything.
	Pageable bool
	// Timing measures on the device how long compute waited for copies, by timed
	// events: three more records a batch.
	Timing bool
	// CloseTimeout is how long Close waits for work on the device, and the end of a
	// range for a copy from pageable memory. 0 means 5 s.
	CloseTimeout time.Duration
}

const (
	defaultDepth     = 3
	defaultHostSlots = 8
	// From largeSlot on it is hostSlotsBytes that a ring takes, in no fewer and no more
	// slots than these.
	largeSlot      = 1 << 20
	hostSlotsBytes = 128 << 20
	leastHostSlots = 3
	mostHostSlots  = 16
	// maxBatchesPerCopy bounds what New chooses.
	maxBatchesPerCopy = 32
	// copyBytes is the size at which a copy reaches nine tenths of a PCIe 5 bus;
	// cmd/leat probe measures it.
	copyBytes           = 4 << 20
	defaultCloseTimeout = 5 * time.Second
	// most bounds every count: far above use, and far below what would exhaust memory
	// by the bookkeeping alone.
	most = 1 << 16
)

// validate is every mistake in o, for a loader's batch size.
func (o Options) validate(batch int) error {
	var errs []error
	count := func(name string, v int) {
		if v < 0 || v > most {
			errs = append(errs, fmt.Errorf("%s is %d, want 0 (the default) to %d", name, v, most))
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
	count("BatchesPerCopy", o.BatchesPerCopy)
	count("ComputeStreams", o.ComputeStreams)
	if o.MaxStreams > 0 && o.MaxStreams < o.ComputeStreams {
		errs = append(errs, fmt.Errorf("MaxStreams is %d, want at least ComputeStreams (%d)", o.MaxStreams, o.ComputeStreams))
	}
	if o.Transform != nil {
		errs = append(errs, o.Transform.validate(batch))
	}
	if o.MinHostSlots > o.HostSlots && o.HostSlots > 0 {
		errs = append(errs, fmt.Errorf("MinHostSlots is %d, want at most HostSlots (%d)", o.MinHostSlots, o.HostSlots))
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

// withDefaults is o with its zero values replaced, but for those that size chooses.
func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Depth, defaultDepth)
	def(&o.ComputeStreams, 1)
	def(&o.MaxStreams, o.ComputeStreams+3)
	if o.CloseTimeout == 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	return o
}
