package cuda

import (
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// A hostFunc is a function that a stream has yet to run.
type hostFunc struct {
	gpu *gpu
	f   func()
}

// hostFuncs are the functions queued on all devices, by the number that travels
// through the driver as the callback's user data. Numbers are never used again, so
// a call that comes late finds nothing rather than another's function.
var hostFuncs struct {
	sync.Mutex
	last   uintptr
	queued map[uintptr]hostFunc
}

func queueHostFunc(d *gpu, f func()) uintptr {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	if hostFuncs.queued == nil {
		hostFuncs.queued = make(map[uintptr]hostFunc)
	}
	hostFuncs.last++
	hostFuncs.queued[hostFuncs.last] = hostFunc{d, f}
	return hostFuncs.last
}

func takeHostFunc(number uintptr) func() {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	f := hostFuncs.queued[number].f
	delete(hostFuncs.queued, number)
	return f
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

// runHostFunc is called by a thread of the driver.
func runHostFunc(number uintptr) uintptr {
	if f := takeHostFunc(number); f != nil {
		f()
	}
	return 0
}

// HostFunc runs f on a thread of the driver, which runs those of all streams one
// after another. After a fault f is never run.
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
	number := queueHostFunc(d, f)
	r := g.call(d.cu.launchHostFunc, uintptr(s), hostFuncEntry(), number)
	if r != success {
		takeHostFunc(number)
	}
	return g.leaveStream(s, r)
}
