package cpu

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/pages"
)

// Device addresses are numbers of our own. They look like no address that a host
// could read, differ between devices, and are not given out twice; between two
// allocations lies a gap, so that running over an end is always noticed.
const (
	spaceBit   = 1 << 62 // no address of a process on amd64 or arm64
	spaceShift = 48      // 256 TiB of addresses a device
	alignment  = 256
	gap        = 1 << 16
)

// origin is how memory came to the device.
type origin uint8

const (
	deviceMemory origin = iota
	allocatedHost
	registeredHost
	pageableHost // has no device address
)

// allocation is a piece of memory that the device knows.
type allocation struct {
	base   driver.Address
	mem    []byte
	bytes  int64
	origin origin
	locked bool
	users  atomic.Int64 // operations submitted and not done, on any device; one less when freed
	// collected memory is Go's.
	collected bool
}

// isPinned reports whether the device copies from a without help; a is nil for
// host memory that it doesn't know.
func (a *allocation) isPinned() bool { return a != nil && a.origin != pageableHost }

// space is a device's addresses, sorted. Guarded by the device's mutex.
type space struct {
	next        driver.Address
	end         driver.Address
	list        []*allocation
	used, limit int64 // bytes of device memory; limit 0 is none
}

func newSpace(device uint64, limit int64) space {
	base := spaceBit | driver.Address(device<<spaceShift&(spaceBit-1))
	return space{next: base + gap, end: base + 1<<spaceShift, limit: limit}
}

// place gives a an address; false if the device has used up all it had.
func (s *space) place(a *allocation) bool {
	size := driver.Address(a.bytes+alignment-1) &^ (alignment - 1)
	if size+gap > s.end-s.next {
		return false
	}
	a.base = s.next
	s.next += size + gap
	s.list = append(s.list, a)
	return true
}

// find is the allocation that p lies in, nil if there is none.
func (s *space) find(p driver.Address) *allocation {
	i, ok := slices.BinarySearchFunc(s.list, p, func(a *allocation, p driver.Address) int {
		switch {
		case p < a.base:
			return 1
		case p >= a.base+driver.Address(a.bytes):
			return -1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return s.list[i]
}

func (s *space) remove(a *allocation) {
	if i := slices.Index(s.list, a); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

// freeAll gives back the device memory that was not freed.
func (s *space) freeAll() {
	for _, a := range s.list {
		if a.origin == deviceMemory {
			_ = a.drop()
		}
	}
	s.list, s.used = nil, 0
}

// resolve is the n bytes at p and the allocation they lie in. role says in the
// error what they were to be.
func (d *Device) resolve(call, role string, p driver.Address, n int64) ([]byte, *allocation, error) {
	if n < 0 {
		return nil, nil, d.fail(call, driver.ErrInvalid, fmt.Sprintf("%s of %d bytes", role, n))
	}
	if n == 0 {
		return nil, nil, nil
	}
	a := d.space.find(p)
	if a == nil {
		return nil, nil, d.fail(call, driver.ErrInvalid,
			fmt.Sprintf("%s at %#x, which is not in any memory of this device, or in memory that was freed", role, p))
	}
	offset := int64(p - a.base)
	if n > a.bytes-offset {
		return nil, nil, d.fail(call, driver.ErrInvalid,
			fmt.Sprintf("%s is [%d:%d] of an allocation of %d bytes", role, offset, offset+n, a.bytes))
	}
	return a.mem[offset : offset+n : offset+n], a, nil
}

// use counts an operation that needs a's memory, which is not freed. a may be nil.
func use(a *allocation) *allocation {
	if a != nil {
		a.users.Add(1)
	}
	return a
}

// drop ends a use of a, or its owner's hold on it; the last gives the memory back.
// It needs no mutex: the last use may be another device's. a may be nil.
func (a *allocation) drop() error {
	if a == nil || a.users.Add(-1) >= 0 {
		return nil
	}
	return a.free()
}

// free gives memory that nobody uses back to the system, or leaves it to Go.
func (a *allocation) free() error {
	if a.collected {
		return nil
	}
	return pages.Free(a.mem)
}

// Alloc implements driver.Device.
func (d *Device) Alloc(bytes int64) (driver.Address, error) {
	const call = "Alloc"
	if err := d.reserve(call, bytes, &d.space.used, d.space.limit, d.options.memoryHint()); err != nil {
		return 0, err
	}
	mem, err := d.pages(call, bytes, pages.Alloc)
	if err == nil && d.adversary != nil && d.adversary.Poison {
		fill(mem, PoisonByte)
	}

	d.mu.Lock()
	defer d.unlock()
	a := &allocation{mem: mem, bytes: bytes}
	if err == nil && !d.space.place(a) {
		err = d.fail(call, driver.ErrOutOfMemory, "this device has given out all of its addresses")
	}
	if err != nil {
		d.space.used -= bytes
		return 0, err
	}
	return a.base, nil
}

// reserve is the start of an allocation: it counts bytes against a limit. hint is what
// to do about a limit that is too low.
func (d *Device) reserve(call string, bytes int64, used *int64, limit int64, hint string) error {
	d.mu.Lock()
	defer d.unlock()
	if err := d.admit(Call{Op: call, Bytes: bytes}); err != nil {
		return err
	}
	if err := d.unguarded(call); err != nil {
		return err
	}
	if bytes <= 0 {
		return d.fail(call, driver.ErrInvalid, fmt.Sprintf("%d bytes asked for, want 1 or more", bytes))
	}
	if limit > 0 && bytes > limit-*used {
		return d.fail(call, driver.ErrOutOfMemory,
			fmt.Sprintf("%d bytes asked for, %d of %d are free: %s", bytes, max(0, limit-*used), limit, hint))
	}
	*used += bytes
	return nil
}

// pages is memory from the system. It is called without the mutex.
func (d *Device) pages(call string, bytes int64, alloc func(int64) ([]byte, error)) ([]byte, error) {
	mem, err := alloc(bytes)
	switch {
	case errors.Is(err, pages.ErrNoMemory):
		return nil, d.fail(call, driver.ErrOutOfMemory, fmt.Sprintf("%d bytes asked for, which the system refused: fewer or smaller buffers need less", bytes))
	case err != nil:
		return nil, d.fail(call, err, "")
	}
	return mem, nil
}

// Free implements driver.Device. With work pending on the memory nothing is freed
// and the error is ErrInvalid. It succeeds after a fault too.
func (d *Device) Free(p driver.Address) error {
	const call = "Free"
	d.mu.Lock()
	defer d.unlock()
	if d.closed {
		return d.fail(call, driver.ErrClosed, "")
	}
	a := d.space.find(p)
	if a == nil || a.base != p || a.origin != deviceMemory {
		return d.fail(call, driver.ErrInvalid, fmt.Sprintf("%#x is not what Alloc returned, or was freed before", p))
	}
	if err := d.trip(Call{Op: call, Bytes: a.bytes}); err != nil {
		return err
	}
	if err := d.unguarded(call); err != nil {
		return err
	}
	if err := d.idleMemory(call, a); err != nil {
		return err
	}
	d.space.remove(a)
	d.space.used -= a.bytes
	return d.giveBack(call, a)
}

// idleMemory refuses to free what submitted operations will still use. On a GPU
// such a call blocks, or corrupts.
func (d *Device) idleMemory(call string, a *allocation) error {
	users := a.users.Load()
	if users == 0 || d.fault != nil {
		return nil
	}
	return d.fail(call, driver.ErrInvalid, fmt.Sprintf("%d operations submitted before still use the memory", users))
}

// giveBack takes a's memory, at once or when what runs is done with it.
func (d *Device) giveBack(call string, a *allocation) error {
	if err := a.drop(); err != nil {
		return d.fail(call, err, "")
	}
	return nil
}
