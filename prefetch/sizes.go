package prefetch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/copytime"
	"github.com/leat-go/leat/loader"
)

// machine is what a Prefetcher is made for.
type machine struct {
	host   bool  // there is no device: the consumer reads host memory
	gpu    bool  // its bus is slow with small copies
	pinned int64 // the budget for pinned memory, where the options name none
	free   int64 // device memory that is free
	epoch  int   // batches in an epoch, 0 if that is not known
}

// sizes are all that was worked out of options before any memory is touched.
type sizes struct {
	in                *loader.Layout // as the loader fills it
	out               *loader.Layout // as it is delivered: another one only with a transform
	scratch           *loader.Layout // between a transform's operations; nil without
	like              likes          // what out has of in
	scratchLike       likes          // what scratch has of in
	stride, outStride int64          // between batches that lie together, as filled and as delivered

	options Options // in force
	pinned  int64   // the budget for pinned memory
	device  int64   // the budget for device memory
	outputs int64   // pinned memory of a host consumer's transform
	slots   int64   // device memory of slots, raw memory and scratch
	others  int     // streams beside the compute streams that may use a batch
}

// slotReads is how many streams may read a device slot in a lap.
func (z *sizes) slotReads() int {
	return z.options.Streams.Compute + z.options.BatchesPerCopy*z.others
}

// alignment of a batch in a slot of several, that of a device allocation.
const alignment = 256

// stride is the distance of two batches that lie together.
func stride(l *loader.Layout) int64 { return sum(l.Size(), alignment-1) &^ (alignment - 1) }

// raws is how much raw memory there is with a transform: one slot that is copied to while
// the transform reads the other.
const raws = 2

// mostObjects bounds the events and the windows that New makes.
const mostObjects = 1 << 20

// fit works out all sizes. It is a pure function: the same for the same arguments.
func fit(o Options, in *loader.Layout, m machine) (z sizes, err error) {
	z = sizes{in: in, out: in, stride: stride(in), options: o.withDefaults()}
	if err := z.transformed(o.Transform, in); err != nil {
		return z, err
	}
	z.outStride = stride(z.out)
	if z.pinned = o.Memory.PinnedBytes; z.pinned == 0 {
		z.pinned = m.pinned
	}
	if z.device = o.Memory.DeviceBytes; z.device == 0 {
		z.device = m.free
	}
	if m.host && o.Transform != nil {
		z.outputs = product(int64(z.options.Depth), z.outStride)
	}
	if !m.host {
		z.others = z.options.Streams.Max - z.options.Streams.Compute
	}
	z.options.BatchesPerCopy = z.batchesPerCopy(m)
	n := z.options.BatchesPerCopy
	z.options.Memory.HostSlots = max(z.hostSlots(n), o.Memory.MinHostSlots)
	z.slots = z.deviceBytes(n)
	return z, z.check(m)
}

// transformed sets the layouts behind a transform.
func (z *sizes) transformed(t *Transform, in *loader.Layout) (err error) {
	if t == nil {
		return nil
	}
	if err := t.fits(in); err != nil {
		return err
	}
	if z.out, err = loader.NewLayout(t.Out, in.BatchSize()); err != nil {
		return err
	}
	if z.like, err = liken("Transform.Out", z.out, in); err != nil || len(t.Scratch) == 0 {
		return err
	}
	if z.scratch, err = loader.NewLayout(t.Scratch, in.BatchSize()); err != nil {
		return err
	}
	z.scratchLike, err = liken("Transform.Scratch", z.scratch, in)
	return err
}

// batchesPerCopy is how many batches travel in one copy at most.
func (z *sizes) batchesPerCopy(m machine) int {
	o := z.options
	switch {
	case m.host:
		return 1
	case o.BatchesPerCopy > 0:
		return o.BatchesPerCopy
	case !m.gpu || o.Depth == 1 || z.in.Size() == 0:
		return 1
	}
	n := int(max(min(maxBatchesPerCopy, copyBytes/z.stride), 1))
	if m.epoch > 0 {
		n = min(n, m.epoch)
	}
	if o.Memory.HostSlots > 0 { // one half is filled while the other is copied
		n = min(n, o.Memory.HostSlots/2)
	}
	for n > 1 && (product(int64(z.hostSlots(n)), z.stride) > z.pinned || z.events(n) > mostObjects ||
		o.Memory.DeviceBytes > 0 && z.deviceBytes(n) > o.Memory.DeviceBytes) {
		n--
	}
	return max(n, 1)
}

// hostSlots is how many batches have room in pinned memory, with n in a copy.
func (z *sizes) hostSlots(n int) int {
	copies := sum(product(int64(n-1), z.stride), z.in.Size())
	switch {
	case z.options.Memory.HostSlots > 0:
		return z.options.Memory.HostSlots
	case copies < largeSlot:
		return int(min(product(defaultHostSlots, int64(n)), mostObjects))
	}
	slots := min(hostSlotsBytes, z.pinned-z.outputs) / copies
	return int(min(product(min(max(slots, leastHostSlots), mostHostSlots), int64(n)), mostObjects))
}

// deviceBytes is the device memory that slots take, with n batches in a copy.
func (z *sizes) deviceBytes(n int) int64 {
	bytes := product(int64(z.options.Depth), int64(n), z.outStride)
	if z.options.Transform != nil {
		bytes = sum(bytes, product(raws, int64(n), z.stride))
	}
	if z.scratch != nil {
		bytes = sum(bytes, z.scratch.Size())
	}
	return bytes
}

// events is how many events there are, with n batches in a copy.
func (z *sizes) events(n int) int64 {
	o := z.options
	events := sum(product(o.Depth, 1+o.Streams.Compute), product(o.Depth, n, z.others))
	events = sum(events, product(copytime.Events, z.marks(z.hostSlots(n), n)))
	return sum(events, int64(z.hostSlots(n)))
}

// marks is how many uploads can be under way whose times are wanted: from the submission of a
// copy until compute has done with its batches. They have batches in host slots, in raw memory
// or in device slots.
func (z *sizes) marks(hostSlots, batchesPerCopy int) int64 {
	o := &z.options
	if !o.Timing && o.Recorder == nil {
		return 0
	}
	places := o.Depth
	if o.Transform != nil {
		places += raws
	}
	return sum(sum(int64(hostSlots), 1), product(int64(places), int64(batchesPerCopy)))
}

// check holds the sizes against the budgets, and against what would do each but not all
// together.
func (z *sizes) check(m machine) error {
	if z.outputs >= z.pinned && z.outputs > 0 {
		return &MemoryError{What: "a transform's output in pinned memory", Bytes: z.outputs, Budget: z.pinned,
			Hint: "raise Memory.PinnedBytes, or use a smaller batch or Depth"}
	}
	if m.host {
		return nil
	}
	o := z.options
	if n := product(o.Depth, o.BatchesPerCopy); n > mostObjects {
		return &OptionError{Option: "Depth × BatchesPerCopy", Value: n, Want: fmt.Sprintf("%d batches on the device at most", mostObjects)}
	}
	if n := z.events(o.BatchesPerCopy); n > mostObjects {
		return &OptionError{Option: "the number of events of Depth, BatchesPerCopy, Streams.Max and Memory.HostSlots", Value: n,
			Want: fmt.Sprintf("%d at most", mostObjects)}
	}
	return z.onDevice("batches", z.slots)
}

// onDevice holds an amount of device memory against the budget.
func (z *sizes) onDevice(what string, bytes int64) error {
	if bytes <= z.device && bytes != math.MaxInt64 { // a sum that is more than any budget
		return nil
	}
	hint := "raise Memory.DeviceBytes, or use a smaller batch, Depth or BatchesPerCopy"
	if z.options.Memory.DeviceBytes == 0 {
		hint = "that is what the device has free: use a smaller batch, Depth or BatchesPerCopy"
	}
	return &MemoryError{What: what + " in device memory", Bytes: bytes, Budget: z.device, Hint: hint}
}

// MemoryError says that batches need more memory than the budget allows. errors.Is finds
// device.ErrOutOfMemory in it.
type MemoryError struct {
	// What needs the memory, and which memory.
	What string
	// Bytes are needed, Budget is what there may be.
	Bytes, Budget int64
	// Hint says which options would help.
	Hint string
	// Err is the refusal of the device, nil where the budget is too small.
	Err error
}

func (e *MemoryError) Error() string {
	s := fmt.Sprintf("prefetch: %s: %d bytes needed, the budget is %d bytes (%s)", e.What, e.Bytes, e.Budget, e.Hint)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns device.ErrOutOfMemory and the refusal of the device.
func (e *MemoryError) Unwrap() []error {
	if e.Err != nil {
		return []error{device.ErrOutOfMemory, e.Err}
	}
	return []error{device.ErrOutOfMemory}
}

// product is that of its factors, none of them negative, or math.MaxInt64 if
// it would overflow.
func product[T int | int64](factors ...T) int64 {
	n := int64(1)
	for _, f := range factors {
		high, low := bits.Mul64(uint64(n), uint64(f))
		if n = int64(low); high != 0 || n < 0 {
			n = math.MaxInt64
		}
		if f == 0 {
			return 0
		}
	}
	return n
}

// sum is a+b, or math.MaxInt64 if it would overflow.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
