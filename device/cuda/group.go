package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// maxArgs is what cuLaunchKernel takes, which has the most.
const maxArgs = 11

// A group is a run of driver calls on one OS thread, and the memory that they
// exchange with C: its address may be kept in a uintptr, because a group is
// pinned and is never freed. One goroutine owns a group from newGroup to end.
type group struct {
	gpu  *gpu
	op   string
	name string // of the stream or the event, for errors

	args   [maxArgs]uintptr
	out    [2]uint64               // results of 4 or 8 bytes
	text   [256]byte               // names and UUIDs
	values [driver.MaxArgs]uint64  // a kernel's parameters …
	params [driver.MaxArgs]uintptr // … and where each is; never changes
	hold   unsafe.Pointer          // keeps Go memory alive, and off the stack, during a call
	next   *group                  // in the free list
}

// groups are the groups in no use. There are as many as there were ever calls at
// once.
var groups struct {
	sync.Mutex
	free *group
	pins runtime.Pinner
}

func newGroup(d *gpu, op string) *group {
	groups.Lock()
	defer groups.Unlock()
	g := groups.free
	if g == nil {
		g = new(group)
		groups.pins.Pin(g)
		for i := range g.params {
			g.params[i] = uintptr(unsafe.Pointer(&g.values[i]))
		}
	} else {
		groups.free = g.next
	}
	g.gpu, g.op, g.name = d, op, ""
	return g
}

// end gives the group back. It does not touch the thread.
func (g *group) end() {
	g.gpu, g.hold = nil, nil
	groups.Lock()
	defer groups.Unlock()
	g.next, groups.free = groups.free, g
}

// call calls the driver. Copying args to the heap keeps purego from allocating a
// slice for each call. An arg is a handle, a number, foreign memory, or memory of
// the group's own: never the address of a variable.
func (g *group) call(fn uintptr, args ...uintptr) result {
	return invoke(fn, g.args[:copy(g.args[:], args)])
}

// result0 and result1 are where a call puts what it returns.
func (g *group) result0() uintptr { g.out[0] = 0; return uintptr(unsafe.Pointer(&g.out[0])) }
func (g *group) result1() uintptr { g.out[1] = 0; return uintptr(unsafe.Pointer(&g.out[1])) }

// handle, size and number are results of a pointer's, a size_t's and an int's size.
// They, and what else a call returned, are to be read before the group ends.
func (g *group) handle() uintptr    { return uintptr(g.out[0]) }
func (g *group) number(i int) int   { return int(*(*int32)(unsafe.Pointer(&g.out[i]))) }
func (g *group) size(i int) int64   { return int64(g.out[i]) }
func (g *group) buffer() uintptr    { return uintptr(unsafe.Pointer(&g.text[0])) }
func (g *group) paramList() uintptr { return uintptr(unsafe.Pointer(&g.params[0])) }

// pointer is a result that points at the driver's memory.
func (g *group) pointer() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&g.out[0])) }

// memory is the address of the caller's memory, alive until the group's end. Being
// held by the group puts it on the heap, if it isn't foreign; there it stays put.
func (g *group) memory(mem []byte) uintptr {
	g.hold = unsafe.Pointer(unsafe.SliceData(mem))
	return uintptr(g.hold)
}

// enter begins a group with the device's context current on its thread. leave must
// follow on the same goroutine, with nothing between them that blocks on another.
func (d *gpu) enter(op string) (*group, error) {
	if err := d.refused(op); err != nil {
		return nil, err
	}
	g := newGroup(d, op)
	runtime.LockOSThread()
	if r := g.call(d.cu.ctxPushCurrent, d.ctx); r != success {
		err := g.failure(r, foundEarlier)
		runtime.UnlockOSThread()
		g.end()
		return nil, err
	}
	return g, nil
}

// refused is the error of a device that is closed or has failed.
func (d *gpu) refused(op string) error {
	if d.closed.Load() {
		return &driver.Error{Op: op, Device: d.name, Err: driver.ErrClosed}
	}
	if fault := d.fault.Load(); fault != nil {
		return fault
	}
	return nil
}

// leave ends a group begun by enter and makes an error of r.
func (g *group) leave(r result) error { return g.leaveFor(r, foundEarlier) }

// leaveStream ends a group that submitted work to s. With LEAT_SYNC it waits for
// that work first, so that a fault is this call's own.
func (g *group) leaveStream(s driver.Stream, r result) error {
	if g.gpu.sync && r == success && !g.isCapturing(s) {
		return g.leaveFor(g.call(g.gpu.cu.streamSynchronize, uintptr(s)), causedHere)
	}
	return g.leaveFor(r, foundEarlier)
}

func (g *group) leaveFor(r result, o origin) error {
	var err error
	if r != success {
		err = g.failure(r, o)
	}
	// Popping gives the thread back the context it had. It has no failure that
	// the calls before it would not have met.
	g.call(g.gpu.cu.ctxPopCurrent, g.result0())
	runtime.UnlockOSThread()
	g.end()
	return err
}
