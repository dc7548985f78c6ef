package prefetch

import (
	"fmt"

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
	return p.fitsDevice(p.deviceBytes(p.options.BatchesPerCopy))
}

// batchesPerCopy is how many batches travel in one upload.
func (p *Prefetcher) batchesPerCopy() int {
	o := p.options
	switch {
	case p.dev == nil:
		return 1
	case o.BatchesPerCopy > 0:
		return o.BatchesPerCopy
	case p.dev.Properties().Kind == "cpu" || o.Depth == 1 || p.layout.Bytes() == 0:
		return 1
	}
	n := int(min(maxBatchesPerCopy, (copyBytes+p.stride-1)/p.stride))
	if batches, known := p.loader.Batches(); known {
		n = min(n, batches)
	}
	for n > 1 && (int64(p.hostSlots(n))*p.hostSlotBytes(n) > p.pinned || o.DeviceBytes > 0 && p.deviceBytes(n) > o.DeviceBytes) {
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
	return int64(n-1)*p.stride + p.layout.Bytes()
}

// outputBytes is the pinned memory that a transform's output takes: a host
// consumer's.
func (p *Prefetcher) outputBytes() int64 {
	if p.dev != nil || p.options.Transform == nil {
		return 0
	}
	return int64(p.options.Depth) * stride(p.out)
}

// deviceBytes is the device memory for n batches a copy.
func (p *Prefetcher) deviceBytes(n int) int64 {
	bytes := int64(p.options.Depth) * int64(n) * stride(p.out)
	if p.options.Transform != nil {
		bytes += raws * int64(n) * p.stride
	}
	if p.scratch != nil {
		bytes += p.scratch.Bytes()
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
	if bytes > budget {
		return fmt.Errorf("prefetch: %d bytes of device memory asked for, %d bytes in the budget (%s): %w", bytes, budget, hint, device.ErrOutOfMemory)
	}
	return nil
}

// fitsResults holds a Map's ring of results against what the slots leave of the
// budgets.
func (p *Prefetcher) fitsResults(l *loader.Layout, slots int) error {
	bytes := int64(slots) * l.Bytes()
	if used := p.pool.Stats().Bytes; used+bytes > p.pinned {
		return fmt.Errorf("prefetch: Map: %d results take %d bytes of pinned memory, the host slots %d, and the budget is %d (raise PinnedBytes, or use fewer slots): %w",
			slots, bytes, used, p.pinned, device.ErrOutOfMemory)
	}
	if p.options.DeviceBytes > 0 {
		bytes += p.deviceBytes(p.options.BatchesPerCopy)
	}
	return p.fitsDevice(bytes)
}
