package kernels

import (
	"time"

	"github.com/leat-go/leat/device"
)

// maxSpin is far above use: a stream that spins longer never comes back, since
// nothing can stop a kernel.
const maxSpin = time.Hour

// Spin keeps s busy for d and touches no memory: it stands in for a model's
// compute in tests and measurements. A GPU busy-waits on one thread. The CPU
// device's compute engine is occupied on a timer, and leaves the cores to others,
// as an accelerator would; in a testing/synctest bubble it takes virtual time.
func Spin(s *device.Stream, d time.Duration) error {
	var m mistakes
	m.stream(s)
	if d < 0 || d > maxSpin {
		m.add("d", d, "0 to %v", maxSpin)
	}
	if err := m.err("Spin"); err != nil || d == 0 {
		return err
	}
	l := device.Launch{Kernel: spin, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	l.Args.AddInt64(int64(d))
	return s.Launch(&l)
}

var spin = &device.Kernel{Name: "spin", Module: module, Go: func(a *device.Args) {
	time.Sleep(time.Duration(a.Int64(0)))
}}
