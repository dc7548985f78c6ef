package prefetch_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// mean writes the mean of x to out: a Go function for the CPU device. For a GPU the
// Kernel would name a Module of PTX too.
var mean = &device.Kernel{
	Name: "mean",
	Go: func(a *device.Args) {
		out, x := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
		var sum float32
		for _, v := range x {
			sum += v
		}
		out[0] = sum / float32(len(x))
	},
}

// submitMean submits the kernel to a stream, on which out gets the mean of the batch's y.
func submitMean(stream *device.Stream, out device.View, batch prefetch.Batch) error {
	launch := device.Launch{Kernel: mean, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	out.Out(&launch.Args)
	batch.Field("y").View.In(&launch.Args)
	return stream.Launch(&launch)
}

// Work on a stream of one's own is announced by UsedOn first: that stream then waits for
// the batch's copy, and the next copy into the same memory waits for that stream.
func ExampleBatch_UsedOn() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
	check(err)
	defer compute.Close()
	side, err := dev.NewStream(device.StreamOptions{Name: "side"})
	check(err)
	defer side.Close()
	out, err := dev.Alloc(4)
	check(err)
	defer out.Close()
	host, err := dev.AllocHost(out.Size(), device.HostOptions{})
	check(err)
	defer host.Close()
	ld, err := loader.New(Squares{}, 5, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	for batch, err := range pf.All(ctx) {
		check(err)
		check(batch.UsedOn(side))
		check(submitMean(side, out.View(), batch))
	}
	check(side.CopyD2H(host.Bytes(), out.View()))
	check(side.Synchronize(ctx))
	fmt.Println(math.Float32frombits(binary.LittleEndian.Uint32(host.Bytes())))
	// Output: 51
}
