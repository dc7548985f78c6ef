package device_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// scale multiplies x by a factor. The CPU device runs Go, once a launch and over all
// elements; for a GPU the Kernel names a Module of PTX with an entry point "scale", whose
// parameters are the same in the same order.
var scale = &device.Kernel{
	Name: "scale",
	Go: func(a *device.Args) {
		x, factor := device.Elements[float32](a, 0), a.F32(1)
		for i := range x {
			x[i] *= factor
		}
	},
}

// A kernel of one's own is a Go function that runs in a stream's order.
func ExampleStream_Launch() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer stream.Close()
	x, err := dev.Alloc(4 * 4)
	check(err)
	defer x.Close()
	host, err := dev.AllocHost(x.Size(), device.HostOptions{})
	check(err)
	defer host.Close()

	check(stream.Memset(x.View(), 0x3f)) // every element is 0x3f3f3f3f, 0.747
	launch := device.Launch{Kernel: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{4, 1, 1}}
	x.View().InOut(&launch.Args) // the kernel reads x and writes it
	launch.Args.Float32(10)
	check(stream.Launch(&launch)) // returns at once
	check(stream.CopyD2H(host.Bytes(), x.View()))
	check(stream.Synchronize(context.Background()))
	fmt.Printf("%.2f\n", math.Float32frombits(binary.LittleEndian.Uint32(host.Bytes())))
	// Output: 7.47
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

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
