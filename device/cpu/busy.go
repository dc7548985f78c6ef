package cpu

import (
	"time"

	"github.com/leat-go/leat/device/driver"
)

// busy is recognised by the engines, which take its time from the argument.
var busy = &driver.Kernel{Name: "busy", Go: func(*driver.Args) {}}

func busyTime(a *driver.Args) time.Duration { return max(0, time.Duration(a.Int64(0))) }

// Busy is a kernel that does nothing but occupy a compute engine for d: by the
// model's clock, or on a plain device by a timer. The launch may be submitted any
// number of times, to any number of streams.
func Busy(d time.Duration) *driver.Launch {
	l := &driver.Launch{Kernel: busy, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	l.Args.AddInt64(int64(d))
	return l
}
