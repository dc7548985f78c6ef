package cpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/pages"
)

// pinned is the host memory that the device knows, sorted by its real address.
// Guarded by the device's mutex.
type pinned struct {
	list        []*allocation
	used, limit int64 // bytes that are not pageable; limit 0 is none
}

func start(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// search is where an allocation that contains address p is or would be.
func (h *pinned) search(p uintptr) (int, bool) {
	return slices.BinarySearchFunc(h.list, p, func(a *allocation, p uintptr) int {
		switch {
		case p < start(a.mem):
			return 1
		case p-start(a.mem) >= uintptr(a.bytes):
			return -1
		}
		return 0
	})
}

// find is the allocation that holds all of mem, nil if there is none.
func (h *pinned) find(mem []byte) *allocation {
	i, ok := h.search(start(mem))
	if !ok {
		return nil
	}
	a := h.list[i]
	if start(mem)-start(a.mem)+uintptr(len(mem)) > uintptr(a.bytes) {
		return nil
	}
	return a
}

// exactly is the allocation of that origin that is mem and no more.
func (h *pinned) exactly(mem []byte, origins ...origin) *allocation {
	a := h.find(mem)
	if a == nil || start(a.mem) != start(mem) || a.bytes != int64(len(mem)) || !slices.Contains(origins, a.origin) {
		return nil
	}
	return a
}

// overlaps reports whether any byte of mem is known already.
func (h *pinned) overlaps(mem []byte) bool {
	i, ok := h.search(start(mem))
	return ok || i < len(h.list) && start(h.list[i].mem) < start(mem)+uintptr(len(mem))
}

func (h *pinned) insert(a *allocation) {
	i, _ := h.search(start(a.mem))
	h.list = slices.Insert(h.list, i, a)
}

func (h *pinned) remove(a *allocation) {
	if i := slices.Index(h.list, a); i >= 0 {
		h.list = slices.Delete(h.list, i, i+1)
	}
}

func (h *pinned) bytes() (n int64) {
	for _, a := range h.list {
		n += a.bytes
	}
	return n
}

// AllocHost implements driver.Device. The memory starts on a page; its pages are
// locked only if c.Locked asks for it. Pageable memory has no device address and
// doesn't count against PinnedBytes.
func (d *Device) AllocHost(bytes int64, c driver.HostConfig) ([]byte, error) {
	const call = "AllocHost"
	a := &allocation{origin: allocatedHost, bytes: bytes, locked: c.Locked && !c.Pageable}
	limit := d.pinned.limit
	used := &d.pinned.used
	if c.Pageable {
		a.origin, limit, used = pageableHost, 0, new(int64)
	}
	if err := d.reserve(call, bytes, used, limit, d.options.pinnedHint()); err != nil {
		return nil, err
	}
	alloc := pages.Alloc
	if d.options.GoMemory {
		alloc, a.collected = pages.Heap, true
	}
	var err error
	if a.mem, err = d.pages(call, bytes, alloc); err == nil {
		if err = d.adopt(call, a); err != nil {
			_ = a.free()
		}
	}
	if err != nil {
		d.unreserve(a)
		return nil, err
	}
	return a.mem, nil
}

// RegisterHost implements driver.Device.
func (d *Device) RegisterHost(mem []byte, c driver.HostConfig) error {
	const call = "RegisterHost"
	bytes := int64(len(mem))
	if err := d.reserve(call, bytes, &d.pinned.used, d.pinned.limit, d.options.pinnedHint()); err != nil {
		return err
	}
	a := &allocation{origin: registeredHost, mem: mem, bytes: bytes, locked: c.Locked}
	if err := d.adopt(call, a); err != nil {
		d.unreserve(a)
		return err
	}
	return nil
}

// adopt makes host memory known to the device. It is called without the mutex.
func (d *Device) adopt(call string, a *allocation) error {
	if a.locked {
		if err := pages.Lock(a.mem); err != nil {
			return d.lockError(call, err)
		}
	}
	d.mu.Lock()
	defer d.unlock()
	err := d.endedError(call)
	switch {
	case err != nil:
	case d.pinned.overlaps(a.mem):
		err = d.fail(call, driver.ErrInvalid, "some of the memory is registered already")
	case a.origin != pageableHost && !d.space.place(a):
		err = d.fail(call, driver.ErrOutOfMemory, "this device has given out all of its addresses")
	}
	if err != nil {
		if a.locked {
			_ = pages.Unlock(a.mem)
		}
		return err
	}
	d.pinned.insert(a)
	return nil
}

func (d *Device) lockError(call string, err error) error {
	if errors.Is(err, pages.ErrLockLimit) {
		err = fmt.Errorf("%w: %w", driver.ErrOutOfMemory, err)
	}
	return d.fail(call, err, "raise the limit of locked memory (ulimit -l, RLIMIT_MEMLOCK), or don't ask for Locked: the CPU device doesn't need it")
}

func (d *Device) unreserve(a *allocation) {
	if a.origin == pageableHost {
		return
	}
	d.mu.Lock()
	defer d.unlock()
	d.pinned.used -= a.bytes
}

// FreeHost implements driver.Device. With copies pending on the memory nothing is
// freed and the error is ErrInvalid. It succeeds after a fault too.
func (d *Device) FreeHost(mem []byte) error {
	const call = "FreeHost"
	d.mu.Lock()
	defer d.unlock()
	a, err := d.disown(call, mem, allocatedHost, pageableHost)
	if err != nil {
		return err
	}
	return d.giveBack(call, a)
}

// UnregisterHost implements driver.Device. What holds for FreeHost holds for it.
func (d *Device) UnregisterHost(mem []byte) error {
	d.mu.Lock()
	defer d.unlock()
	_, err := d.disown("UnregisterHost", mem, registeredHost)
	return err
}

// disown makes the device forget host memory.
func (d *Device) disown(call string, mem []byte, origins ...origin) (*allocation, error) {
	if d.closed {
		return nil, d.fail(call, driver.ErrClosed, "")
	}
	a := d.pinned.exactly(mem, origins...)
	if a == nil {
		return nil, d.fail(call, driver.ErrInvalid, "the memory is not what this device allocated or registered, or was freed before")
	}
	if err := d.trip(Call{Op: call, Bytes: a.bytes}); err != nil {
		return nil, err
	}
	if err := d.unguarded(call); err != nil {
		return nil, err
	}
	if err := d.idleMemory(call, a); err != nil {
		return nil, err
	}
	d.pinned.remove(a)
	if a.origin != pageableHost {
		d.pinned.used -= a.bytes
		d.space.remove(a)
	}
	if a.locked {
		if err := pages.Unlock(a.mem); err != nil {
			return nil, d.fail(call, err, "")
		}
	}
	return a, nil
}

// HostAddress implements driver.Device. mem may be part of what was pinned.
func (d *Device) HostAddress(mem []byte) (driver.Address, error) {
	const call = "HostAddress"
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: call, Bytes: int64(len(mem))}); err != nil {
		return 0, err
	}
	a := d.pinned.find(mem)
	if a == nil || a.origin == pageableHost {
		return 0, d.fail(call, driver.ErrInvalid, "the memory is not pinned on this device")
	}
	return a.base + driver.Address(start(mem)-start(a.mem)), nil
}
