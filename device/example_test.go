package device_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
)

// scale multiplies x by a factor. The CPU device runs Go, once a launch and over all
// elements; for a GPU the Kernel names a Module of PTX with an entry point "scale", whose
// parameters are the same in the same order.
var scale = &device.Kernel{
	Name: "scale",
	Go: func(a *device.Args) {
		x, factor := device.Elements[float32](a, 0), a.Float32(1)
		for i := range x {
			x[i] *= factor
		}
	},
}

// A kernel of your own is a Go function that runs in a stream's order.
func ExampleStream_Launch() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	check(dev.CheckKernels(scale)) // on a GPU it would say that scale has no PTX
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	x, err := dev.Alloc(4 * 4)
	check(err)
	defer x.Close()
	host, err := dev.AllocHost(x.Size(), device.HostOptions{})
	check(err)
	defer host.Close()
	values := dtype.As[float32](host.Bytes())
	copy(values, []float32{1, 2, 3, 4})

	check(stream.CopyH2D(x.View(), host.Bytes()))
	launch := device.Launch{Kernel: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{4, 1, 1}}
	x.View().InOut(&launch.Args) // the kernel reads x and writes it
	launch.Args.AddFloat32(10)
	check(stream.Launch(&launch)) // returns at once
	check(stream.CopyD2H(host.Bytes(), x.View()))
	check(stream.Synchronize(context.Background()))
	fmt.Println(values)
	// Output: [10 20 30 40]
}

// What a kernel has no form for is known before the first batch.
func ExampleDevice_CheckKernels() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	ptxOnly := &device.Kernel{Name: "fused", Module: &device.Module{Name: "fused", PTX: "…"}}
	err = dev.CheckKernels(scale, ptxOnly)
	fmt.Println(errors.Is(err, device.ErrUnsupported))
	fmt.Println(err)
	// Output:
	// true
	// cpu: CheckKernels: not supported by this device (kernel "fused" has no Go function, which is what a CPU device runs: set Kernel.Go)
}

// Bytes go to the device, within it and back, in a stream's order. None of the calls
// waits but the last.
func ExampleStream_CopyH2D() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	b, err := dev.Alloc(8)
	check(err)
	defer b.Close()
	host, err := dev.AllocHost(8, device.HostOptions{}) // pinned
	check(err)
	defer host.Close()
	copy(host.Bytes(), "leat")

	first, second := b.View().Slice(0, 4), b.View().Slice(4, 4)
	check(stream.CopyH2D(first, host.Bytes()[:4]))
	check(stream.CopyD2D(second, first))
	check(stream.Memset(first.Slice(0, 1), 'L'))
	check(stream.CopyD2H(host.Bytes(), b.View()))
	check(stream.Synchronize(context.Background()))
	fmt.Printf("%s\n", host.Bytes())
	// Output: Leatleat
}

// Two streams share one buffer: compute waits for what upload has written, and upload
// overwrites it only when compute has read it. The host waits once, at the end.
func ExampleEvent() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	upload, err := dev.NewStream(device.StreamOptions{Name: "upload"})
	check(err)
	defer upload.Close()
	compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	check(err)
	defer compute.Close()
	filled, err := dev.NewEvent(device.EventOptions{Name: "filled"})
	check(err)
	defer filled.Close()
	read, err := dev.NewEvent(device.EventOptions{Name: "read"})
	check(err)
	defer read.Close()
	slot, err := dev.Alloc(1)
	check(err)
	defer slot.Close()
	host, err := dev.AllocHost(6, device.HostOptions{})
	check(err)
	defer host.Close()
	in, out := host.Bytes()[:3], host.Bytes()[3:]
	copy(in, "abc")

	for i := range in {
		if i > 0 {
			check(upload.Wait(read)) // overwrite after read
		}
		check(upload.CopyH2D(slot.View(), in[i:][:1]))
		check(upload.Record(filled))

		check(compute.Wait(filled)) // read after filled
		check(compute.CopyD2H(out[i:][:1], slot.View()))
		check(compute.Record(read))
	}
	check(read.Synchronize(context.Background()))
	fmt.Printf("%s\n", out)
	// Output: abc
}

// A modelled H200 copies 64 MiB in the time that the card takes, on any machine.
func ExampleElapsed() {
	h200 := cpu.H200()
	dev, err := cpu.Open(cpu.Options{Model: &h200})
	check(err)
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	x, err := dev.Alloc(64 << 20)
	check(err)
	defer x.Close()
	host, err := dev.AllocHost(x.Size(), device.HostOptions{})
	check(err)
	defer host.Close()
	start, err := dev.NewEvent(device.EventOptions{Timing: true})
	check(err)
	defer start.Close()
	end, err := dev.NewEvent(device.EventOptions{Timing: true})
	check(err)
	defer end.Close()

	check(stream.Launch(cpu.Busy(100 * time.Millisecond))) // the device has work, and the host runs ahead
	check(stream.Record(start))
	check(stream.CopyH2D(x.View(), host.Bytes()))
	check(stream.Record(end))
	check(end.Synchronize(context.Background()))
	took, err := device.Elapsed(start, end)
	check(err)
	fmt.Println(took.Round(10 * time.Microsecond))
	// Output: 1.21ms
}

// A table is uploaded once, and two streams read it: neither begins before the upload
// has ended, and the host waits for none of them.
func ExampleJunction() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	var streams [3]*device.Stream
	for i := range streams {
		streams[i], err = dev.NewStream(device.StreamOptions{})
		check(err)
		defer streams[i].Close()
	}
	upload, left, right := streams[0], streams[1], streams[2]
	table, err := dev.Alloc(8)
	check(err)
	defer table.Close()
	host, err := dev.AllocHost(16, device.HostOptions{})
	check(err)
	defer host.Close()
	junction, err := dev.NewJunction()
	check(err)
	defer junction.Close()

	check(upload.Memset(table.View(), 7))
	check(junction.Fork(upload, left, right))
	check(left.CopyD2H(host.Bytes()[:8], table.View()))
	check(right.CopyD2H(host.Bytes()[8:], table.View()))
	check(junction.Join(upload, left, right))
	check(upload.Synchronize(context.Background())) // and so of all three
	fmt.Println(host.Bytes())
	// Output: [7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7]
}

// Memory that is there already, a file mapping for example, is pinned where it lies:
// copies run from it at full speed, and kernels read it in place.
func ExampleDevice_RegisterHost() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	mapping := make([]byte, 4*4) // most often from mmap
	values := dtype.As[float32](mapping)
	copy(values, []float32{1, 2, 3, 4})
	pinned, err := dev.RegisterHost(mapping, device.HostOptions{})
	check(err)
	defer pinned.Close() // the memory stays the caller's

	v, err := pinned.View()
	check(err)
	launch := device.Launch{Kernel: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{4, 1, 1}}
	v.InOut(&launch.Args)
	launch.Args.AddFloat32(0.5)
	check(stream.Launch(&launch))
	check(stream.Synchronize(context.Background()))
	fmt.Println(values)
	// Output: [0.5 1 1.5 2]
}

// One device passes bytes to another; events order the two without the host.
func ExampleStream_CopyPeer() {
	first, err := cpu.Open(cpu.Options{})
	check(err)
	defer first.Close()
	second, err := cpu.Open(cpu.Options{Index: 1})
	check(err)
	defer second.Close() // it waits for the first's events, and so is closed before
	here, err := first.NewStream(device.StreamOptions{})
	check(err)
	defer here.Close()
	there, err := second.NewStream(device.StreamOptions{})
	check(err)
	defer there.Close()
	ready, err := first.NewEvent(device.EventOptions{Name: "ready"})
	check(err)
	defer ready.Close()
	src, err := first.Alloc(4)
	check(err)
	defer src.Close()
	dst, err := second.Alloc(4)
	check(err)
	defer dst.Close()
	host := make([]byte, 4)

	_, err = first.Connect(context.Background(), second) // what is copied between the two arrives
	check(err)
	check(here.Memset(src.View(), 5))
	check(here.Record(ready))
	check(there.Wait(ready))
	check(there.CopyPeer(dst.View(), src.View()))
	check(there.CopyD2H(host, dst.View()))
	check(there.Synchronize(context.Background()))
	fmt.Println(first.PeerOf(second), host)
	// Output: true [5 5 5 5]
}

// A step of short kernels is captured once and replayed: one call a batch, and on a GPU a
// fraction of the time. The replay uses the same addresses and the same scalars; what
// changes from batch to batch is in memory that the graph's kernels read.
func ExampleStream_Capture() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	x, err := dev.Alloc(4)
	check(err)
	defer x.Close()
	host, err := dev.AllocHost(4, device.HostOptions{})
	check(err)
	defer host.Close()
	values := dtype.As[float32](host.Bytes())
	step := func(factor float32) func() error {
		return func() error {
			launch := device.Launch{Kernel: scale, Grid: [3]uint32{1}, Block: [3]uint32{1}}
			x.View().InOut(&launch.Args)
			launch.Args.AddFloat32(factor)
			return errors.Join(stream.CopyH2D(x.View(), host.Bytes()), stream.Launch(&launch), stream.CopyD2H(host.Bytes(), x.View()))
		}
	}

	graph, err := stream.Capture(step(10)) // nothing runs
	check(err)
	defer graph.Close() // before the memory that it has the addresses of
	exec, err := graph.Instantiate()
	check(err)
	defer exec.Close()
	for i := range 3 {
		values[0] = float32(i)
		check(exec.Launch(stream))
		check(stream.Synchronize(context.Background()))
		fmt.Println(values)
	}

	another, err := stream.Capture(step(0.5))
	check(err)
	defer another.Close()
	for _, d := range graph.Diff(another) { // what replaying the first would not notice
		fmt.Println(d)
	}
	check(exec.Update(another))
	check(exec.Launch(stream))
	check(stream.Synchronize(context.Background()))
	fmt.Println(values)
	// Output:
	// [0]
	// [10]
	// [20]
	// node 1, kernel "scale": argument 1: 0x41200000 (int32 1092616192, float32 10), then 0x3f000000 (int32 1056964608, float32 0.5)
	// [10]
}

// Another library has a stream and memory of the same GPU: work in that stream takes its
// place among the library's own, and nothing need be copied or waited for.
func ExampleDevice_StreamFromHandle() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	native, address, end := otherLibrary(dev) // on a GPU, a CUstream and a CUdeviceptr
	defer end()

	stream, err := dev.StreamFromHandle(native)
	check(err)
	defer stream.Close() // the library's stream stays as it is
	tensor := dev.ViewOf(address, 4)
	host := make([]byte, 4)
	check(stream.CopyD2H(host, tensor))
	check(stream.Synchronize(context.Background()))
	fmt.Println(host)
	// Output: [9 9 9 9]
}

// otherLibrary has a stream in which it has filled a tensor of 4 bytes.
func otherLibrary(dev *device.Device) (stream uintptr, tensor device.Address, end func()) {
	s, err := dev.NewStream(device.StreamOptions{})
	check(err)
	b, err := dev.Alloc(4)
	check(err)
	check(s.Memset(b.View(), 9))
	return uintptr(s.Handle()), b.View().Address(), func() { check(errors.Join(b.Close(), s.Close())) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
