package kernels_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"

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
	for b := host.Bytes(); len(b) > 0; b = b[4:] {
		fmt.Printf("%.1f ", math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	// Output: -1.0 1.0 -0.2 -1.0 1.0 0.2
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
