package cpu_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// Three batches, each copied in, computed on and copied out in 1, 3 and 1 ms, take
// 15 ms one after the other. On three streams the copies hide behind the kernels.
func Example() {
	dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{
		H2D: cpu.Link{Latency: time.Millisecond},
		D2H: cpu.Link{Latency: time.Millisecond},
	}})
	check(err)
	buf, err := dev.Alloc(1024)
	check(err)
	host, err := dev.AllocHost(1024, device.HostOptions{})
	check(err)
	timed := device.EventOptions{Timing: true}
	start, err := dev.NewEvent(timed)
	check(err)
	end, err := dev.NewEvent(timed)
	check(err)

	// The gate opens when all work has been submitted, so that only the device's
	// time is measured.
	gate, err := dev.NewStream(device.StreamOptions{})
	check(err)
	submitted := make(chan struct{})
	check(gate.HostFunc(func() { <-submitted }))
	check(gate.Record(start))
	for range 3 {
		s, err := dev.NewStream(device.StreamOptions{})
		check(err)
		check(s.Wait(start))
		check(s.CopyH2D(buf.View(), host.Bytes()))
		check(s.Launch(cpu.Busy(3 * time.Millisecond)))
		check(s.CopyD2H(host.Bytes(), buf.View()))
		done, err := dev.NewEvent(device.EventOptions{})
		check(err)
		check(s.Record(done))
		check(gate.Wait(done))
	}
	check(gate.Record(end))
	close(submitted)
	check(end.Synchronize(context.Background()))

	took, err := device.Elapsed(start, end)
	check(err)
	fmt.Println(took)
	// Output: 11ms
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
