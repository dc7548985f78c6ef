package prefetch

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
)

// size chooses what the options leave open and holds all of it against the budgets,
// before any memory is touched.
func (p *Prefetcher) size() error {
	p.pinned = p.options.PinnedBytes
	if p.pinned == 0 {
		p.pinned = pinnedpool.DefaultBudget()
	}
	p.options.BatchesPerCopy = p.batchesPerCopy()
	p.options.HostSlots = max(p.hostSlots(p.options.BatchesPerCopy), p.options.MinHostSlots)
	if bytes := p.outputBytes(); bytes >= p.pinned {
		return fmt.Errorf("prefetch: %d bytes of pinned memory asked for a transform's output, %d bytes in the budget (raise PinnedBytes, or use a smaller batch or Depth): %w",
			bytes, p.pinned, device.ErrOutOfMemory)
	}
	if p.dev == nil {
		return nil
	}
	if err := p.fitsBookkeeping(); err != nil {
		return err
	}
	return p.fitsDevice(p.deviceBytes(p.options.BatchesPerCopy))
}

// mostObjects bounds the events and the slots that New makes.
const mostObjects = 1 << 20

// fitsBookkeeping refuses options each of which would do, but not all together.
func (p *Prefetcher) fitsBookkeeping() error {
	o := p.options
	if n := product(o.Depth, o.BatchesPerCopy); n > mostObjects {
		return fmt.Errorf("prefetch: Depth is %d and BatchesPerCopy %d, want %d batches on the device at most", o.Depth, o.BatchesPerCopy, mostObjects)
	}
	if n := p.events(o.BatchesPerCopy); n > mostObjects {
		return fmt.Errorf("prefetch: Depth is %d, BatchesPerCopy %d, MaxStreams %d and HostSlots %d: that takes %d events, want %d at most",
			o.Depth, o.BatchesPerCopy, o.MaxStreams, o.HostSlots, n, mostObjects)
	}
	return nil
}

// events is how many events carriers of n batches and the timeline have.
func (p *Prefetcher) events(n int) int64 {
	o := p.options
	events := sum(product(o.Depth, o.ComputeStreams), product(o.Depth, n, o.MaxStreams-o.ComputeStreams))
	if o.Timing {
		events = sum(events, product(timings, p.hostSlots(n)+o.Depth, n))
	}
	return events
}

// product is that of its factors, none of them negative, or what is most where that is more.
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

// sum is a+b, or what is most where that is more.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// batchesPerCopy is how many batches travel in one upload.
func (p *Prefetcher) batchesPerCopy() int {
	o := p.options
	switch {
	case p.dev == nil:
		return 1
	case o.BatchesPerCopy > 0:
		return o.BatchesPerCopy
	case p.dev.Properties().Kind == "cpu" || o.Depth == 1 || p.layout.Size() == 0:
		return 1
	}
	n := int(min(maxBatchesPerCopy, (copyBytes+p.stride-1)/p.stride))
	if batches, known := p.loader.Batches(); known {
		n = min(n, batches)
	}
	for n > 1 && (product(int64(p.hostSlots(n)), p.hostSlotBytes(n)) > p.pinned || p.events(n) > mostObjects ||
		o.DeviceBytes > 0 && p.deviceBytes(n) > o.DeviceBytes) {
		n--
	}
	return max(n, 1)
}

// hostSlots is the number of host slots of n batches each.
func (p *Prefetcher) hostSlots(n int) int {
	slot := p.hostSlotBytes(n)
	switch {
	case p.options.HostSlots > 0:
		return p.options.HostSlots
	case slot < largeSlot:
		return defaultHostSlots
	}
	slots := min(hostSlotsBytes, p.pinned-p.outputBytes()) / slot
	return int(min(max(slots, leastHostSlots), mostHostSlots))
}

// hostSlotBytes is the size of a host slot of n batches.
func (p *Prefetcher) hostSlotBytes(n int) int64 {
	return sum(product(int64(n-1), p.stride), p.layout.Size())
}

// outputBytes is the pinned memory that a transform's output takes: a host
// consumer's.
func (p *Prefetcher) outputBytes() int64 {
	if p.dev != nil || p.options.Transform == nil {
		return 0
	}
	return product(int64(p.options.Depth), stride(p.out))
}

// deviceBytes is the device memory for n batches a copy.
func (p *Prefetcher) deviceBytes(n int) int64 {
	bytes := product(int64(p.options.Depth), int64(n), stride(p.out))
	if p.options.Transform != nil {
		bytes = sum(bytes, product(raws, int64(n), p.stride))
	}
	if p.scratch != nil {
		bytes = sum(bytes, p.scratch.Size())
	}
	return bytes
}

// fitsDevice holds an amount of device memory against the budget, or what the
// device has free.
func (p *Prefetcher) fitsDevice(bytes int64) error {
	budget, hint := p.options.DeviceBytes, "raise DeviceBytes, or use a smaller batch or Depth"
	if budget == 0 {
		free, _, err := p.dev.Memory()
		if err != nil {
			return err
		}
		budget, hint = free, "that is what the device has free: use a smaller batch or Depth"
	}
	if bytes > budget || bytes == math.MaxInt64 { // a sum that is more than any budget
		return fmt.Errorf("prefetch: %d bytes of device memory asked for, %d bytes in the budget (%s): %w", bytes, budget, hint, device.ErrOutOfMemory)
	}
	return nil
}

// fitsResults holds a Map's ring of results against what the slots leave of the
// budgets.
func (p *Prefetcher) fitsResults(l *loader.Layout, slots int) error {
	bytes := product(int64(slots), l.Size())
	if used := p.pool.Stats().Bytes; sum(used, bytes) > p.pinned {
		return fmt.Errorf("prefetch: Map: %d results take %d bytes of pinned memory, the host slots %d, and the budget is %d (raise PinnedBytes, or use fewer slots): %w",
			slots, bytes, used, p.pinned, device.ErrOutOfMemory)
	}
	if p.options.DeviceBytes > 0 {
		bytes = sum(bytes, p.deviceBytes(p.options.BatchesPerCopy))
	}
	return p.fitsDevice(bytes)
}
