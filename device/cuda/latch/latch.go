// Package latch has what tests need to control time on a GPU: a latch that holds a
// stream until the host lets go, so that a missing wait fails every time and not
// now and then; a kernel that takes a given time; and one that faults.
//
// Importing it adds its module to every GPU opened afterwards; only tests do.
package latch

import (
	_ "embed"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

//go:generate clang-14 -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -O3 -ffp-contract=off -S -o latch.ptx latch.cu

//go:embed latch.ptx
var ptx string

var (
	module = driver.RegisterModule(&driver.Module{Name: "latch", PTX: ptx})
	hold   = &device.Kernel{Name: "leat_latch_hold", Module: module}
	spin   = &device.Kernel{Name: "leat_latch_spin", Module: module}
	fault  = &device.Kernel{Name: "leat_latch_fault", Module: module}
)

// limit is how long a stream is held at most.
const limit = 20 * time.Second

// The words of a latch's memory.
const (
	turnWord   = 0
	gaveUpWord = 1
	stateBytes = 8
)

// A Latch holds streams until Open. It is safe for concurrent use.
type Latch struct {
	mem  *device.HostBuffer
	view device.View

	mu   sync.Mutex
	turn uint32 // the turn that the next Open ends
}

// New makes a latch on a GPU. The caller owns it until Close.
func New(dev *device.Device) (*Latch, error) {
	mem, err := dev.AllocHost(stateBytes, device.HostOptions{})
	if err != nil {
		return nil, err
	}
	view, err := mem.View()
	if err != nil {
		return nil, err
	}
	l := &Latch{mem: mem, view: view, turn: 1}
	atomic.StoreUint32(l.word(turnWord), 0)
	atomic.StoreUint32(l.word(gaveUpWord), 0)
	return l, nil
}

func (l *Latch) word(i uintptr) *uint32 {
	return (*uint32)(unsafe.Pointer(&l.mem.Bytes()[4*i]))
}

// Hold makes the work submitted to s from now on wait for the next Open.
func (l *Latch) Hold(s *device.Stream) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	launch := device.Launch{Kernel: hold, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	// As a number: a latch also holds streams of another handle of its GPU, and what
	// orders its memory is the host that polls it, not the streams.
	launch.Args.AddUint64(uint64(l.view.Address()))
	launch.Args.AddUint32(l.turn)
	launch.Args.AddUint64(uint64(limit.Nanoseconds()))
	return s.Launch(&launch)
}

// Open lets go of every stream held so far. The latch can be used again.
func (l *Latch) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	atomic.StoreUint32(l.word(turnWord), l.turn)
	l.turn++
}

// GaveUp reports whether a stream waited for Open in vain, for 20 seconds. What the
// test then saw proves nothing.
func (l *Latch) GaveUp() bool { return atomic.LoadUint32(l.word(gaveUpWord)) != 0 }

// Close frees the latch. No stream may be held any more.
func (l *Latch) Close() error { return l.mem.Close() }

// Spin keeps s busy for d.
func Spin(s *device.Stream, d time.Duration) error {
	launch := SpinLaunch(d)
	return s.Launch(&launch)
}

// SpinLaunch is what Spin submits, for drivers' wrappers.
func SpinLaunch(d time.Duration) device.Launch {
	launch := device.Launch{Kernel: spin, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	launch.Args.AddUint64(uint64(d.Nanoseconds()))
	return launch
}

// Fault stores at an address where there is no memory, which ends the device for
// this process.
func Fault(s *device.Stream) error {
	const nowhere = 0xdead0000
	launch := device.Launch{Kernel: fault, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	launch.Args.AddUint64(nowhere)
	return s.Launch(&launch)
}
