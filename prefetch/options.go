package prefetch

import (
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Options tunes a Prefetcher. The zero value is ready to use.
type Options struct {
	// Depth is the number of device slots, each of the batches of one copy. 0 means 3:
	// one in use, one ready, one in flight. 1 disables overlap: the benchmarks'
	// baseline. Without a device it counts only with a Transform, whose output it holds.
	Depth int
	// BatchesPerCopy is how many consecutive batches travel in one copy at most, where
	// the producers are ahead. 0 leaves it to New: as many as make 6 MiB on a GPU, whose
	// bus is slow with small copies, within the budgets and the epoch, and 1 elsewhere,
	// with Depth 1, and without a device.
	BatchesPerCopy int
	// Transform, if not nil, is done to every batch on the device before it is
	// delivered, or by the CPU device for a host consumer.
	Transform *Transform `json:"-"`
	// Streams says which streams work on batches.
	Streams Streams
	// Memory says how much memory batches may take, and of what kind it is.
	Memory Memory
	// Timing measures on the device how long compute waited for copies, by timed
	// events: three more records a copy.
	Timing bool
	// Recorder, if not nil, is told what the pipeline does. Package observe has one. A few
	// uploads are timed for it, in bursts so rare that they cost less than 1%, and with Timing
	// all of them.
	Recorder journal.Recorder `json:"-"`
	// CloseTimeout is how long Close waits for work on the device, and the end of a
	// range for a copy from pageable memory. 0 means 5 s.
	CloseTimeout time.Duration
}

// Streams says which streams work on batches. The zero value is the user's own stream
// alone.
type Streams struct {
	// Compute is how many streams compute on batches side by side: New's own and others
	// that it makes. 0 means 1. Batches are delivered in order, each to the stream with
	// the fewest that it has not finished: Batch.Stream, and not New's own, is the one to
	// submit its work to.
	Compute int
	// Max is the number of streams that may use one batch, all compute streams included:
	// the rest, beyond Compute, is for Batch.UsedOn. 0 means Compute + 3.
	Max int
	// RoundRobin gives batches to the compute streams in turn, whatever they have to do.
	RoundRobin bool
}

// Memory says how much memory batches may take. The zero value leaves it to New.
type Memory struct {
	// PinnedBytes is the budget for pinned memory: the host slots and Map's results. 0
	// means a quarter of the memory that this process may use.
	PinnedBytes int64
	// DeviceBytes is the budget for device memory: device slots, what a Transform needs
	// and Map's results. 0 means what the device has free.
	DeviceBytes int64
	// HostSlots is how many batches have room in pinned memory. 0 means 8 where a batch
	// is smaller than 1 MiB, and for larger ones as many as make 128 MiB, from 3 to 32;
	// with several batches a copy the same for what one copy carries. All workers fill
	// one batch together, whatever their number, so that few large slots keep the bus
	// busy, and memory that fits the processor's cache is read from there: with 38 MB a
	// batch 3 slots reached the bus's own rate and 8 four fifths of it. Small ones pass
	// so fast that it takes more of them to cover the time in which goroutines wake: with
	// 3.2 MB a batch 16 slots reached 0.86 of the bus and 32 nineteen twentieths.
	HostSlots int
	// MinHostSlots is how few host slots will do where there is no memory for HostSlots.
	// 0 means HostSlots: fewer is an error.
	MinHostSlots int
	// Pageable allows host slots that aren't page-locked where the device refuses to lock
	// memory. Copies from them don't overlap anything.
	Pageable bool
}

// OptionError is a value that an option can't have.
type OptionError struct {
	// Option is the parameter, or the field of Options, Transform or Output.
	Option string
	// Value is what was found, Want what may be there.
	Value any
	Want  string
	// Err is why, where another package says so.
	Err error
}

func (e *OptionError) Error() string {
	s := fmt.Sprintf("prefetch: %s is %v, want %s", e.Option, e.Value, e.Want)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *OptionError) Unwrap() error { return e.Err }

const (
	defaultDepth     = 3
	defaultHostSlots = 8
	// From largeSlot on it is hostSlotsBytes that the host slots take, in no fewer and no
	// more than these.
	largeSlot      = 1 << 20
	hostSlotsBytes = 128 << 20
	leastHostSlots = 3
	mostHostSlots  = 32
	// maxBatchesPerCopy bounds what New chooses.
	maxBatchesPerCopy = 128
	// copyBytes is how much travels in one copy where batches are small. A PCIe 5 bus
	// reaches nine tenths of its rate with 4 MiB, but the host hears of the end of a copy
	// half a millisecond late: 20 copies' worth of host slots, of 6 MiB each, are what
	// keeps the producers going meanwhile. Batches of 100 kB gain a quarter by them.
	copyBytes           = 6 << 20
	defaultCloseTimeout = 5 * time.Second
	// most bounds every count: far above use, and far below what would exhaust memory
	// by the bookkeeping alone.
	most = 1 << 16
)

// checks collects mistakes in options.
type checks []error

func (c *checks) that(ok bool, option string, value any, want string) {
	if !ok {
		*c = append(*c, &OptionError{Option: option, Value: value, Want: want})
	}
}

func (c *checks) count(option string, n int) {
	c.that(n >= 0 && n <= most, option, n, fmt.Sprintf("0 (the default) to %d", most))
}

func (c *checks) err() error { return errors.Join(*c...) }

// validate is every mistake in o, for a loader's batch size.
func (o Options) validate(batch int) error {
	var c checks
	c.count("Depth", o.Depth)
	c.count("BatchesPerCopy", o.BatchesPerCopy)
	c.count("Streams.Compute", o.Streams.Compute)
	c.count("Streams.Max", o.Streams.Max)
	c.that(o.Streams.Max <= 0 || o.Streams.Max >= o.Streams.Compute, "Streams.Max", o.Streams.Max,
		fmt.Sprintf("0 (the default), or at least Streams.Compute (%d)", o.Streams.Compute))
	m := o.Memory
	c.count("Memory.HostSlots", m.HostSlots)
	c.count("Memory.MinHostSlots", m.MinHostSlots)
	c.that(m.HostSlots <= 0 || m.MinHostSlots <= m.HostSlots, "Memory.MinHostSlots", m.MinHostSlots,
		fmt.Sprintf("at most Memory.HostSlots (%d)", m.HostSlots))
	c.that(m.PinnedBytes >= 0, "Memory.PinnedBytes", m.PinnedBytes, "0 (a quarter of the memory) or more")
	c.that(m.DeviceBytes >= 0, "Memory.DeviceBytes", m.DeviceBytes, "0 (what is free) or more")
	c.that(o.CloseTimeout >= 0, "CloseTimeout", o.CloseTimeout, "0 (5 s) or more")
	if o.Transform != nil {
		o.Transform.validate(&c, batch)
	}
	return c.err()
}

// withDefaults is o with its zero values replaced, except for those that fit chooses.
func (o Options) withDefaults() Options {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Depth, defaultDepth)
	def(&o.Streams.Compute, 1)
	def(&o.Streams.Max, o.Streams.Compute+3)
	if o.CloseTimeout == 0 {
		o.CloseTimeout = defaultCloseTimeout
	}
	return o
}
