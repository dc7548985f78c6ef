package cuda

import (
	"fmt"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// A hostFunc is a function that a stream has yet to run.
type hostFunc struct {
	gpu    *gpu
	stream string // its name
	f      func()
	kept   int // by how many captures, graphs and execs; with none it runs once
}

// hostFuncs are the functions queued on all devices, by the number that travels
// through the driver as the callback's user data. Numbers are never used again, so
// a call that comes late finds nothing rather than another's function.
var hostFuncs struct {
	sync.Mutex
	last   uintptr
	queued map[uintptr]hostFunc
}

func queueHostFunc(h hostFunc) uintptr {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	if hostFuncs.queued == nil {
		hostFuncs.queued = make(map[uintptr]hostFunc)
	}
	hostFuncs.last++
	hostFuncs.queued[hostFuncs.last] = h
	return hostFuncs.last
}

func takeHostFunc(number uintptr) (h hostFunc, ok bool) {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	h, ok = hostFuncs.queued[number]
	if h.kept == 0 {
		delete(hostFuncs.queued, number)
	}
	return h, ok
}

// retainHostFuncs and releaseHostFuncs count what keeps functions for more than one run;
// the last drops them.
func retainHostFuncs(numbers []uintptr) {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	for _, n := range numbers {
		if h, ok := hostFuncs.queued[n]; ok {
			h.kept++
			hostFuncs.queued[n] = h
		}
	}
}

func releaseHostFuncs(numbers []uintptr) {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	for _, n := range numbers {
		h, ok := hostFuncs.queued[n]
		switch h.kept--; {
		case !ok:
		case h.kept == 0:
			delete(hostFuncs.queued, n)
		default:
			hostFuncs.queued[n] = h
		}
	}
}

// keep makes the capture under way keep a function.
func (cs *captures) keep(number uintptr) {
	retainHostFuncs([]uintptr{number})
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.loose = append(cs.loose, number)
}

// forgetHostFuncs drops what a device that is closed will never run.
func forgetHostFuncs(d *gpu) {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	for number, h := range hostFuncs.queued {
		if h.gpu == d {
			delete(hostFuncs.queued, number)
		}
	}
}

// runHostFunc is called by a thread of the driver. A panic that went on into the
// driver, or a Goexit there, would end the process.
func runHostFunc(number uintptr) uintptr {
	h, ok := takeHostFunc(number)
	if !ok {
		return 0
	}
	if err := driver.Guard(h.f); err != nil {
		h.gpu.fault.CompareAndSwap(nil, &driver.Error{Op: "HostFunc", Device: h.gpu.name, Async: true,
			Err:  fmt.Errorf("%w: a host function on stream %q: %w", driver.ErrFault, h.stream, err),
			Hint: "what was to run behind it on this device must not be believed: restart the process"})
	}
	return 0
}

// HostFunc runs f while a thread of the driver waits, which runs those of all streams
// one after another. After a fault f is never run. If f panics or ends its goroutine
// that is a fault of the device, as on the CPU device: there is no undoing what the
// stream does next.
func (d *gpu) HostFunc(s driver.Stream, f func()) error {
	const op = "HostFunc"
	if d.cu.launchHostFunc == 0 {
		return d.unsupported(op, "cuLaunchHostFunc")
	}
	if f == nil {
		return d.invalid(op, "no function to run")
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	captured := g.isCapturing(s)
	number := queueHostFunc(hostFunc{gpu: d, stream: g.name, f: f})
	r := g.call(d.cu.launchHostFunc, uintptr(s), hostFuncEntry(), number)
	switch {
	case r != success:
		takeHostFunc(number)
	case captured:
		d.captures.keep(number)
	}
	return g.leaveStream(s, r)
}
