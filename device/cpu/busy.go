package cpu

import (
	"time"

	"github.com/leat-go/leat/device/driver"
)

// busy is recognised by the model, which takes its time from the argument and
// doesn't run it.
var busy = &driver.Kernel{
	Name: "busy",
	Go:   func(a *driver.Args) { time.Sleep(busyTime(a)) },
}

func busyTime(a *driver.Args) time.Duration { return max(0, time.Duration(a.I64(0))) }

// isBusy reports whether o is a launch of Busy.
func (o *op) isBusy() bool { return o.kind == launch && o.launch.Kernel == busy }

// Busy is a kernel that does nothing but occupy a compute engine for d: by the
// model's clock, or on a plain device by a timer. The launch may be submitted any
// number of times, to any number of streams.
func Busy(d time.Duration) *driver.Launch {
	l := &driver.Launch{Kernel: busy, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	l.Args.Int64(int64(d))
	return l
}
