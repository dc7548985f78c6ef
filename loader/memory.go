package loader

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

// slotAlign is what a slot's address is a multiple of.
const slotAlign = 64

// Slot is memory for one batch.
type Slot struct {
	// ID tells the slots of one Memory apart. A slot comes back with the same ID.
	ID int
	// Bytes has at least Layout.Size bytes and begins at a multiple of 64.
	Bytes []byte
}

// Memory supplies a Run with slots. How many there are decides how far the Run
// works ahead. Its methods may be called by several goroutines at once.
type Memory interface {
	// Get blocks until a slot is free or ctx is done. The Run owns the slot until
	// Next hands it to the caller, or until Put or Quarantine. Any error but ctx's
	// ends the Run and is delivered by Next after the batches before it.
	Get(ctx context.Context) (Slot, error)
	// Put takes back a slot whose batch was not delivered. One in quarantine comes
	// back as well when its producer has returned after all, which may be long
	// after the Run was closed, or never.
	Put(Slot)
	// Quarantine takes a slot that a producer may still write to, because it did
	// not return when its context was cancelled; err names the sample. Until Put
	// the memory is not to be used or freed.
	Quarantine(slot Slot, err error)
}

// A NearMemory is a Memory that is nearer to some processors than to others.
type NearMemory interface {
	Memory
	// Approach is called by each of a Run's workers, by its number from 0 on, before it
	// writes to slots: here it may move to the processors that are near.
	Approach(worker int)
}

// Heap is the plainest Memory: a fixed number of slots of ordinary Go memory. The
// consumer returns each slot by Put when it has read the batch.
type Heap struct {
	free chan Slot
}

// NewHeap makes slots of bytes each, which is Layout.Size for most callers.
func NewHeap(bytes int64, slots int) (*Heap, error) {
	var errs []error
	if slots < 1 || slots > maxSlots {
		errs = append(errs, &OptionError{Option: "slots", Value: slots, Want: fmt.Sprintf("1 to %d", maxSlots)})
		slots = 1
	}
	if limit := maxHeap / int64(slots); bytes < 0 || bytes > limit {
		errs = append(errs, &OptionError{Option: "bytes", Value: bytes, Want: fmt.Sprintf("0 to %d in %d slots", limit, slots)})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	h := &Heap{free: make(chan Slot, slots)}
	for id := range slots {
		h.free <- Slot{ID: id, Bytes: aligned(bytes)}
	}
	return h, nil
}

// aligned returns memory that begins at a multiple of Align. The garbage
// collector does not move it.
func aligned(bytes int64) []byte {
	b := make([]byte, bytes+Align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % Align
	return b[skip : int64(skip)+bytes : int64(skip)+bytes]
}

// Get implements Memory.
func (h *Heap) Get(ctx context.Context) (Slot, error) {
	select {
	case slot := <-h.free:
		return slot, nil
	case <-ctx.Done():
		return Slot{}, context.Cause(ctx)
	}
}

// Put implements Memory.
func (h *Heap) Put(slot Slot) { h.free <- slot }

// Quarantine implements Memory: the slot is left to the garbage collector, should it
// not come back.
func (h *Heap) Quarantine(Slot, error) {}

// Free is the number of slots that nobody holds.
func (h *Heap) Free() int { return len(h.free) }
