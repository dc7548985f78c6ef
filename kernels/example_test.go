package kernels_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
)

// Two pixels of three channels become floats, one plane a channel.
func ExampleNormalize() {
	const pixels, channels = 2, 3
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	in, err := dev.Alloc(pixels * channels)
	check(err)
	out, err := dev.Alloc(pixels * channels * 4)
	check(err)
	host, err := dev.AllocHost(out.Size(), device.HostOptions{})
	check(err)

	image := host.Bytes()[:in.Size()]
	copy(image, []byte{0, 102, 255, 255, 0, 51})
	check(stream.CopyH2D(in.View(), image))
	check(kernels.Normalize(stream, out.View(), in.View(), kernels.NormalizeParams{
		Mean:   []float32{0.5, 0.5, 0},
		Std:    []float32{0.5, 0.5, 1},
		Layout: kernels.ToPlanar,
		Pixels: pixels,
	}))
	check(stream.CopyD2H(host.Bytes(), out.View()))
	check(stream.Synchronize(context.Background())) // an example's way to wait
	fmt.Printf("%.1f\n", dtype.As[float32](host.Bytes()))
	// Output: [-1.0 1.0 -0.2 -1.0 1.0 0.2]
}

// A table of three rows stays on the device, and a batch is gathered from it by index.
// The table may also be pinned host memory, by HostBuffer.View.
func ExampleGather() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	host, err := dev.AllocHost(64, device.HostOptions{})
	check(err)
	table, err := dev.Alloc(3 * 4)
	check(err)
	index, err := dev.Alloc(4 * 4)
	check(err)
	batch, err := dev.Alloc(4 * 4)
	check(err)

	rows, order, out := host.Bytes()[:12], host.Bytes()[16:32], host.Bytes()[32:48]
	copy(rows, "cat dog fox ")
	copy(dtype.As[int32](order), []int32{2, 0, 2, 1})
	check(stream.CopyH2D(table.View(), rows)) // once
	check(stream.CopyH2D(index.View(), order))
	check(kernels.Gather(stream, batch.View(), table.View(), index.View(), kernels.GatherParams{RowBytes: 4, Index: dtype.Int32}))
	check(stream.CopyD2H(out, batch.View()))
	check(stream.Synchronize(context.Background()))
	fmt.Printf("%s\n", out)
	// Output: fox cat fox dog
}

// Halves that the host reads are uint16 in Go.
func ExampleConvert() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	in, err := dev.Alloc(3 * 4)
	check(err)
	out, err := dev.Alloc(3 * 2)
	check(err)
	host, err := dev.AllocHost(in.Size(), device.HostOptions{})
	check(err)

	check(kernels.Fill(stream, in.View(), dtype.Float32, 1.0/3))
	check(kernels.Convert(stream, out.View(), in.View(), dtype.Float16, dtype.Float32))
	halves := host.Bytes()[:out.Size()]
	check(stream.CopyD2H(halves, out.View()))
	check(stream.Synchronize(context.Background()))
	for _, h := range dtype.As[uint16](halves) {
		fmt.Print(kernels.FromFloat16(h), " ")
	}
	// Output: 0.33325195 0.33325195 0.33325195
}

// The checksum of what arrived on the device is that of what was sent.
func ExampleChecksum() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	x, err := dev.Alloc(1000)
	check(err)
	sum, err := dev.Alloc(8)
	check(err)
	host, err := dev.AllocHost(8, device.HostOptions{})
	check(err)
	sent := make([]byte, x.Size())
	copy(sent, "some bytes")

	check(stream.CopyH2D(x.View(), sent))
	check(kernels.Checksum(stream, sum.View(), x.View()))
	check(stream.CopyD2H(host.Bytes(), sum.View()))
	check(stream.Synchronize(context.Background()))
	fmt.Println(dtype.As[uint64](host.Bytes())[0] == kernels.ChecksumOf(sent))
	// Output: true
}

// Every mistake of a call is reported at once, and nothing is submitted.
func ExampleError() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	stream, err := dev.NewStream(device.StreamOptions{})
	check(err)
	labels, err := dev.Alloc(10)
	check(err)
	err = kernels.OneHot(stream, device.View{}, labels.View(), kernels.OneHotParams{Labels: dtype.Uint8, Classes: 0})
	fmt.Println(err)
	err = kernels.OneHot(stream, labels.View(), labels.View(), kernels.OneHotParams{Labels: dtype.Int32, Classes: 7})
	fmt.Println(err)
	// Output:
	// kernels: OneHot: Classes is 0, want 1 to 2^31-1
	// kernels: OneHot: labels.Size() is 10, want a multiple of 4
	// out.Size() is 10, want 56
}

// A crop depends on the seed, the epoch and the sample's position, and on nothing
// else.
func ExampleCropParams_At() {
	p := kernels.CropParams{
		Height: 32, Width: 32, OutHeight: 32, OutWidth: 32, PixelBytes: 3,
		Pad: 4, FlipProbability: 0.5, Seed: 1, Epoch: 2,
	}
	batch := p.At(70)
	p.Position = 64 // the batch that starts with sample 64
	fmt.Println(batch == p.At(6))
	// Output: true
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
