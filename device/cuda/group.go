package cuda

import (
	"runtime"
	"sync"
	"sync/atomic"
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
	place  *groupPlace             // where it belongs, nil if it is one of the spare ones
	next   *group                  // among the spare ones
}

// groups are hardly more than there were ever calls at once. Each of the first maxPlaces has a
// place of its own, which is empty while a call has the group: to put it back is one
// store, and two callers meet only where both look into the same place.
var groups struct {
	count  atomic.Int32 // the places that groups have
	places [maxPlaces]groupPlace

	mu    sync.Mutex // to make groups, and for those without a place
	spare *group
	pins  runtime.Pinner
}

const maxPlaces = 64

// A groupPlace has a cache line to itself, so that callers on different cores don't wait
// for each other's.
type groupPlace struct {
	group atomic.Pointer[group]
	_     [64 - unsafe.Sizeof(uintptr(0))]byte
}

func newGroup(d *gpu, op string) *group {
	g := takeGroup()
	if g == nil {
		g = makeGroup()
	}
	g.gpu, g.op, g.name = d, op, ""
	return g
}

// takeGroup looks for a group in all places and returns nil if they are empty. It begins
// where the address of the goroutine's stack leads it, so that a goroutine mostly finds
// the group that it had before, which its core's cache still has.
func takeGroup() *group {
	n := uint32(groups.count.Load())
	var here byte
	stack := uint32(uintptr(unsafe.Pointer(&here)) >> 11) // the smallest stack has 2 KiB
	for i := range n {
		p := &groups.places[(stack*0x9e3779b1>>16+i)%n]
		if p.group.Load() == nil {
			continue // without a write, so that the line stays where it is
		}
		if g := p.group.Swap(nil); g != nil {
			return g
		}
	}
	return nil
}

func makeGroup() *group {
	groups.mu.Lock()
	defer groups.mu.Unlock()
	if g := groups.spare; g != nil {
		groups.spare = g.next
		return g
	}
	g := new(group)
	groups.pins.Pin(g)
	for i := range g.params {
		g.params[i] = uintptr(unsafe.Pointer(&g.values[i]))
	}
	if n := groups.count.Load(); n < maxPlaces {
		g.place = &groups.places[n]
		groups.count.Store(n + 1)
	}
	return g
}

// end gives the group back. It does not touch the thread.
func (g *group) end() {
	g.gpu, g.hold = nil, nil
	if g.place != nil {
		g.place.group.Store(g)
		return
	}
	groups.mu.Lock()
	defer groups.mu.Unlock()
	g.next, groups.spare = groups.spare, g
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
