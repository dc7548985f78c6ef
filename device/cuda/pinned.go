package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// Flags of cuMemHostAlloc and of cuMemHostRegister, which agree.
const (
	hostPortable  = 1
	hostDeviceMap = 2
	hostReadOnly  = 8 // cuMemHostRegister only
)

// mappedFrom is the size from which memory is mapped here and then registered.
// cuMemHostAlloc takes 0.45 ms a MiB on the machine measured, registering huge
// pages touched in parallel a tenth of it; below a huge page there is no gain.
const mappedFrom = hugePage

const hugePage = 2 << 20

// mostHost is more than any machine has, and half of what a process can address.
const mostHost = 1 << 46

// origins of pinned memory: how it came to be is how it must end.
type hostOrigin uint8

const (
	hostAllocated  hostOrigin = iota // by cuMemHostAlloc
	hostMapped                       // mapped here, then registered
	hostPageable                     // mapped here, not registered
	hostRegistered                   // the caller's own, registered
)

// A hostBlock is host memory that the device knows of.
type hostBlock struct {
	origin hostOrigin
	mem    []byte // what CUDA allocated, what was mapped, or the caller's own, kept alive
}

// pinned are the blocks by the address that the caller knows.
type pinned struct {
	mu     sync.Mutex
	blocks map[uintptr]hostBlock
}

func (p *pinned) put(address uintptr, b hostBlock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocks == nil {
		p.blocks = make(map[uintptr]hostBlock)
	}
	p.blocks[address] = b
}

// take removes the block that begins where mem does, if its origin is one of want.
func (p *pinned) take(mem []byte, registered bool) (hostBlock, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.blocks[start(mem)]
	if !ok || (b.origin == hostRegistered) != registered {
		return hostBlock{}, false
	}
	delete(p.blocks, start(mem))
	return b, true
}

// has reports whether all of mem lies in a block that is pinned.
func (p *pinned) has(mem []byte) bool {
	at := start(mem)
	return p.contains(at, at+uintptr(len(mem)))
}

// hasAddress reports whether p lies in host memory that the device knows of.
func (p *pinned) hasAddress(at uintptr) bool { return p.contains(at, at) }

func (p *pinned) contains(lo, hi uintptr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.blocks {
		from := start(b.mem)
		if b.origin != hostPageable && from <= lo && hi <= from+uintptr(len(b.mem)) {
			return true
		}
	}
	return false
}

func start(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

// mapping reports whether large blocks are mapped here.
func (d *gpu) mapping() bool {
	return canMap && d.cu.memHostRegister != 0 && d.cu.memHostUnregister != 0
}

func (d *gpu) pinningNote() string {
	if !d.mapping() {
		return "pinned memory comes from cuMemHostAlloc"
	}
	return fmt.Sprintf("pinned memory of %d MiB and more is mapped in huge pages and registered, ten times as fast as cuMemHostAlloc", mappedFrom>>20)
}

// AllocHost returns zeroed memory, pinned the way that is faster for its size; if
// that is refused, the other way.
func (d *gpu) AllocHost(bytes int64, c driver.HostConfig) ([]byte, error) {
	const op = "AllocHost"
	if bytes <= 0 {
		return nil, d.invalid(op, fmt.Sprintf("%d bytes asked for", bytes))
	}
	if err := d.refused(op); err != nil {
		return nil, err
	}
	if err := d.unguarded(op); err != nil {
		return nil, err
	}
	if bytes > mostHost { // rounded up to pages, it might be no number any more
		return nil, &driver.Error{Op: op, Device: d.name, Err: driver.ErrOutOfMemory, Hint: pinRefused(bytes)}
	}
	switch {
	case c.Pageable:
		return d.mapHost(bytes, hostPageable)
	case !d.mapping():
		return d.allocHost(bytes)
	case bytes < mappedFrom:
		return d.eitherWay(bytes, d.allocHost, d.mapPinned)
	default:
		return d.eitherWay(bytes, d.mapPinned, d.allocHost)
	}
}

// eitherWay returns the first way's error if both fail: it is the one expected to
// work.
func (d *gpu) eitherWay(bytes int64, first, second func(int64) ([]byte, error)) ([]byte, error) {
	mem, err := first(bytes)
	if err == nil || errors.Is(err, driver.ErrFault) {
		return mem, err
	}
	mem, again := second(bytes)
	if again != nil {
		return nil, err
	}
	d.note(fmt.Sprintf("pinned memory was refused one way and granted the other: %v", err))
	return mem, nil
}

// allocHost asks for a page more than bytes, less one: CUDA cuts small blocks from
// larger ones and aligns them to less than a page.
func (d *gpu) allocHost(bytes int64) ([]byte, error) {
	page := int64(os.Getpagesize())
	size := bytes + page - 1
	g, err := d.enter("AllocHost")
	if err != nil {
		return nil, err
	}
	r := g.call(d.cu.memHostAlloc, g.result0(), uintptr(size), hostPortable|hostDeviceMap)
	p := g.pointer()
	if r != success {
		err := g.refine(r, driver.ErrOutOfMemory, pinRefused(bytes))
		g.leave(success)
		return nil, err
	}
	if err := g.leave(success); err != nil {
		return nil, err
	}
	block := unsafe.Slice((*byte)(p), size)
	head := -int64(uintptr(p)) & (page - 1)
	mem := block[head : head+bytes : head+bytes]
	clear(mem) // CUDA promises nothing of its contents
	d.pinned.put(start(mem), hostBlock{hostAllocated, block})
	return mem, nil
}

func pinRefused(bytes int64) string {
	return fmt.Sprintf("%d bytes of pinned memory asked for: is that more than is free, than the container's limit, or than ulimit -l? Fewer or smaller host buffers need less; with HostOptions.Pageable none is needed, and copies block the caller", bytes)
}

func (d *gpu) mapPinned(bytes int64) ([]byte, error) { return d.mapHost(bytes, hostMapped) }

// mapHost maps memory, on the GPU's node where that is known, and registers it
// unless it is to be pageable.
func (d *gpu) mapHost(bytes int64, o hostOrigin) ([]byte, error) {
	pages, err := mapPages(bytes, d.place.Node)
	if err != nil {
		return nil, &driver.Error{Op: "AllocHost", Device: d.name,
			Err: fmt.Errorf("%w: %w", driver.ErrOutOfMemory, err), Hint: pinRefused(bytes)}
	}
	if o == hostMapped {
		if err := keepFromFork(pages); err != nil {
			d.note(fmt.Sprintf("pinned memory could not be kept from forked children (%v): a fork in this process may make the device read old data", err))
		}
		if err := d.register("AllocHost", pages, hostPortable|hostDeviceMap); err != nil {
			if left := unmapPages(pages); left != nil {
				err = errors.Join(err, left)
			}
			return nil, err
		}
	}
	d.pinned.put(start(pages), hostBlock{o, pages})
	return pages[:bytes:bytes], nil
}

func (d *gpu) register(op string, mem []byte, flags uintptr) error {
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	r := g.call(d.cu.memHostRegister, g.memory(mem), uintptr(len(mem)), flags)
	if r == outOfMemory || r == operatingSystem {
		err := g.refine(r, driver.ErrOutOfMemory, pinRefused(int64(len(mem))))
		g.leave(success)
		return err
	}
	return g.leave(r)
}

func (d *gpu) unregister(op string, mem []byte) error {
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.memHostUnregister, g.memory(mem)))
}

// FreeHost waits for work that is running, as CUDA does.
func (d *gpu) FreeHost(mem []byte) error {
	const op = "FreeHost"
	if err := d.refused(op); err != nil {
		return err // the driver may still be writing there: the memory stays
	}
	if err := d.unguarded(op); err != nil {
		return err
	}
	b, ok := d.pinned.take(mem, false)
	if !ok {
		return d.invalid(op, "AllocHost of this device did not return this memory, or it was freed")
	}
	switch b.origin {
	case hostMapped:
		if err := d.unregister(op, b.mem); err != nil {
			return err
		}
		return unmapPages(b.mem)
	case hostPageable:
		return unmapPages(b.mem)
	default:
		g, err := d.enter(op)
		if err != nil {
			return err
		}
		return g.leave(g.call(d.cu.memFreeHost, g.memory(b.mem)))
	}
}

// RegisterHost pins mem. A read-only mapping is refused without ReadOnly, and by
// some systems with it when a mapping for the device is asked for too, which under
// unified addressing it has in any case.
func (d *gpu) RegisterHost(mem []byte, c driver.HostConfig) error {
	const op = "RegisterHost"
	if len(mem) == 0 {
		return d.invalid(op, "no memory to register")
	}
	if !d.canRegister() {
		return d.unsupported(op, "cuMemHostRegister")
	}
	if err := d.unguarded(op); err != nil {
		return err
	}
	flags := uintptr(hostPortable | hostDeviceMap)
	if c.ReadOnly {
		flags |= hostReadOnly
	}
	err := d.register(op, mem, flags)
	if err != nil && c.ReadOnly && !errors.Is(err, driver.ErrFault) {
		err = d.register(op, mem, hostPortable|hostReadOnly)
	}
	if err != nil {
		return d.explainRegister(err, c)
	}
	d.pinned.put(start(mem), hostBlock{hostRegistered, mem})
	return nil
}

func (d *gpu) canRegister() bool { return d.cu.memHostRegister != 0 && d.cu.memHostUnregister != 0 }

// explainRegister adds what the driver's "invalid value" leaves out.
func (d *gpu) explainRegister(err error, c driver.HostConfig) error {
	e, ok := err.(*driver.Error)
	if !ok || result(e.Code) != invalidValue {
		return err
	}
	if c.ReadOnly {
		e.Hint = "the memory can't be registered read-only: does the device support it?"
	} else {
		e.Hint = "the memory can't be registered: a read-only mapping needs ReadOnly"
	}
	return e
}

func (d *gpu) UnregisterHost(mem []byte) error {
	const op = "UnregisterHost"
	if err := d.refused(op); err != nil {
		return err
	}
	if err := d.unguarded(op); err != nil {
		return err
	}
	b, ok := d.pinned.take(mem, true)
	if !ok {
		return d.invalid(op, "RegisterHost of this device did not pin this memory, or it was unpinned")
	}
	return d.unregister(op, b.mem)
}

// HostAddress is the device's address of any place in pinned memory.
func (d *gpu) HostAddress(mem []byte) (driver.Address, error) {
	const op = "HostAddress"
	if d.cu.memHostGetDevicePointer == 0 {
		return 0, d.unsupported(op, "cuMemHostGetDevicePointer")
	}
	g, err := d.enter(op)
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.memHostGetDevicePointer, g.result0(), g.memory(mem), 0)
	p := driver.Address(g.handle())
	if r == invalidValue {
		err := g.refine(r, driver.ErrInvalid, "the memory is not pinned, or the device can't see it")
		g.leave(success)
		return 0, err
	}
	if err := g.leave(r); err != nil {
		return 0, err
	}
	return p, nil
}
