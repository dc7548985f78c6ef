package device

import (
	"fmt"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// A Buffer owns device memory.
type Buffer struct {
	view  View
	owned bool
}

// Alloc returns bytes of device memory, aligned to 256. The caller owns it until
// Close. Its contents are undefined.
func (d *Device) Alloc(bytes int64) (*Buffer, error) {
	if err := d.refuse("Alloc", notNegative(bytes)); err != nil {
		return nil, err
	}
	b := &Buffer{view: View{dev: d, owner: new(closing), bytes: bytes}, owned: bytes > 0}
	if bytes > 0 {
		addr, err := d.drv.Alloc(bytes)
		if err != nil {
			return nil, err
		}
		b.view.addr = addr
		d.live.allocations.Add(1)
		d.blocks.add(b.view.owner, addr, bytes)
	}
	d.live.buffers.Add(1)
	d.live.deviceBytes.Add(bytes)
	return b, nil
}

// Size is the buffer's length.
func (b *Buffer) Size() int64 { return b.view.bytes }

// View is the whole buffer.
func (b *Buffer) View() View { return b.view }

// Close gives the memory back. Work that uses it must be done, and graphs that have its
// address closed: until then it is ErrInvalid. With an error the memory stays the
// caller's, and Close may be tried again. A second Close does nothing.
func (b *Buffer) Close() error {
	return b.view.owner.close(func() error {
		d := b.view.dev
		if b.owned {
			if err := d.blocks.free("Free", d, b.view.owner, func() error { return d.drv.Free(b.view.addr) }); err != nil {
				return err
			}
		}
		d.live.buffers.Add(-1)
		d.live.deviceBytes.Add(-b.view.bytes)
		return nil
	})
}

// A View is a range of device memory that somebody else owns. The zero value is
// empty. It is a small value: pass it by value. Once its Buffer or HostBuffer is
// closed, copies and launches refuse it with ErrInvalid, and so do streams of other
// devices always.
type View struct {
	dev   *Device
	owner *closing // the buffer's; nil where another library owns the memory
	addr  driver.Address
	bytes int64
}

// An Address is a place in device memory, which host code can't read: on a GPU it is the
// driver's own (a CUdeviceptr).
type Address = driver.Address

// ViewOf is a View of device memory that another library owns: the bytes from addr on. The
// memory must be d's and must live as long as the View is used. If addr is no possible
// address, copies and launches refuse the View with ErrInvalid.
func (d *Device) ViewOf(addr Address, bytes int64) View {
	return View{dev: d, addr: addr, bytes: bytes}
}

// Device is the memory's device, nil for an empty View.
func (v View) Device() *Device { return v.dev }

// Address is the device address, for kernels and other libraries.
func (v View) Address() Address { return v.addr }

// Size is the range's length.
func (v View) Size() int64 { return v.bytes }

func (v View) place() driver.Place { return driver.Place{Device: v.dev.drv, Address: v.addr} }

// Slice is the n bytes of v from offset on. It panics if they are not all in v.
func (v View) Slice(offset, n int64) View {
	if offset < 0 || n < 0 || offset > v.bytes-n {
		panic(fmt.Sprintf("device: slice [%d:+%d] of a view of %d bytes", offset, n, v.bytes))
	}
	return View{dev: v.dev, owner: v.owner, addr: v.addr + driver.Address(offset), bytes: n}
}

// Overlaps reports whether v and w share a byte.
func (v View) Overlaps(w View) bool {
	return v.dev == w.dev && v.bytes > 0 && w.bytes > 0 &&
		v.addr < w.addr+driver.Address(w.bytes) && w.addr < v.addr+driver.Address(v.bytes)
}

// usable is the error of op, work on device d that can't use v, nil if it can.
func (v View) usable(op string, d *Device) error {
	switch {
	case v.bytes == 0:
		return nil
	case v.bytes < 0 || uint64(v.bytes) > uint64(^v.addr):
		return d.invalid(op, fmt.Sprintf("there is no memory of %d bytes from address %#x", v.bytes, v.addr))
	case v.dev != d:
		return d.invalid(op, "the memory belongs to "+v.dev.seenFrom(d))
	case v.owner != nil && v.owner.closed.Load():
		return d.stale(op, hintClosed)
	}
	return nil
}

const hintClosed = "the memory's buffer was closed before"

// HostOptions is how host memory is to be pinned. The zero value is ready to use.
type HostOptions struct {
	// Locked asks the CPU device, which has no need of it, to lock the pages too.
	Locked bool
	// ReadOnly is for RegisterHost: the memory is a read-only mapping.
	ReadOnly bool
	// Pageable asks for memory that isn't locked, where locked memory is refused.
	Pageable bool
}

func (o HostOptions) config() driver.HostConfig { return driver.HostConfig(o) }

// A HostBuffer is host memory that the device copies from and to at full speed.
type HostBuffer struct {
	dev        *Device
	closing    closing
	mem        []byte
	registered bool
}

// AllocHost returns page-aligned pinned memory. The caller owns it until Close.
// Where memory may not be locked the error is ErrOutOfMemory with a hint.
func (d *Device) AllocHost(bytes int64, o HostOptions) (*HostBuffer, error) {
	mistakes := []*OptionError{notNegative(bytes)}
	if o.ReadOnly {
		mistakes = append(mistakes, &OptionError{Option: "ReadOnly", Value: true, Want: "false: it is for RegisterHost"})
	}
	if o.Locked && o.Pageable {
		mistakes = append(mistakes, &OptionError{Option: "Pageable", Value: true, Want: "false, since Locked is true"})
	}
	if err := d.refuse("AllocHost", mistakes...); err != nil {
		return nil, err
	}
	h := &HostBuffer{dev: d}
	if bytes > 0 {
		mem, err := d.drv.AllocHost(bytes, o.config())
		if err != nil {
			return nil, err
		}
		h.mem = mem
		d.live.allocations.Add(1)
		d.blocks.add(&h.closing, hostAddress(mem), bytes)
	}
	d.live.hostBuffers.Add(1)
	d.live.pinnedBytes.Add(bytes)
	return h, nil
}

// RegisterHost pins memory that stays the caller's, until Close. A read-only file
// mapping needs ReadOnly. mem must not be Go memory that could be freed before. Private
// memory of a process in which a C library forks should be kept out of the children,
// with MADV_DONTFORK on Linux: otherwise a GPU may go on reading the old pages.
func (d *Device) RegisterHost(mem []byte, o HostOptions) (*HostBuffer, error) {
	var mistakes []*OptionError
	if len(mem) == 0 {
		mistakes = append(mistakes, &OptionError{Option: "len(mem)", Value: 0, Want: "1 or more"})
	}
	if o.Pageable {
		mistakes = append(mistakes, &OptionError{Option: "Pageable", Value: true, Want: "false: memory that is not to be locked need not be registered"})
	}
	if err := d.refuse("RegisterHost", mistakes...); err != nil {
		return nil, err
	}
	if err := d.drv.RegisterHost(mem, o.config()); err != nil {
		return nil, err
	}
	d.live.allocations.Add(1)
	d.live.hostBuffers.Add(1)
	d.live.pinnedBytes.Add(int64(len(mem)))
	h := &HostBuffer{dev: d, mem: mem, registered: true}
	d.blocks.add(&h.closing, hostAddress(mem), int64(len(mem)))
	return h, nil
}

// hostAddress is the host's own address of memory, in the space that CUDA unifies
// with the devices'.
func hostAddress(mem []byte) driver.Address {
	return driver.Address(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
}

// Bytes borrows the memory until Close.
func (h *HostBuffer) Bytes() []byte { return h.mem }

// View is the memory as kernels on the device see it.
func (h *HostBuffer) View() (View, error) {
	if h.closing.closed.Load() {
		return View{}, h.dev.stale("HostAddress", hintClosed)
	}
	if len(h.mem) == 0 {
		return View{dev: h.dev}, nil
	}
	addr, err := h.dev.drv.HostAddress(h.mem)
	if err != nil {
		return View{}, err
	}
	h.dev.blocks.add(&h.closing, addr, int64(len(h.mem)))
	return View{dev: h.dev, owner: &h.closing, addr: addr, bytes: int64(len(h.mem))}, nil
}

// Close gives the memory back, or unpins what RegisterHost pinned. Copies that use it
// must be done, and graphs that have its address closed. With an error the memory stays,
// and Close may be tried again. A second Close does nothing.
func (h *HostBuffer) Close() error {
	return h.closing.close(func() error {
		d := h.dev
		if len(h.mem) > 0 {
			op, free := "FreeHost", d.drv.FreeHost
			if h.registered {
				op, free = "UnregisterHost", d.drv.UnregisterHost
			}
			if err := d.blocks.free(op, d, &h.closing, func() error { return free(h.mem) }); err != nil {
				return err
			}
		}
		d.live.hostBuffers.Add(-1)
		d.live.pinnedBytes.Add(-int64(len(h.mem)))
		h.mem = nil
		return nil
	})
}
