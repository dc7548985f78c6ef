package prefetch_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Map computes on the device and brings results back: upload, compute and download run side
// by side.
func ExamplePrefetcher_Map() {
	dev, err := auto.Open("cpu") // or "" for the first GPU, if there is one
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	ld, err := loader.New(Squares{}, 4, loader.Options{})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	out := prefetch.Output{Fields: []loader.Field{{Name: "half", DType: dtype.Float16}}}
	results := pf.Map(context.Background(), out, func(b prefetch.Batch, out prefetch.Fields) error {
		return kernels.Convert(b.Stream(), out.Field("half").View, b.Field("y").View, dtype.Float16, dtype.Float32)
	})
	for result, err := range results {
		check(err)
		half, err := prefetch.Column[uint16](result, "half") // a float16's bits
		check(err)
		fmt.Println(result.Position().Batch, kernels.FromFloat16(half[0]))
	}
	// Output:
	// 0 0
	// 1 16
	// 2 64
}

// Bytes cross the bus, and the device makes numbers of them before the batch is delivered.
// Without a device a Transform runs on the CPU's.
func ExampleTransform() {
	bytes := loader.FromFunc(6, []loader.Field{{Name: "x", DType: dtype.Uint8}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", uint8(40*i)) })
	ld, err := loader.New(bytes, 3, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Transform: &prefetch.Transform{
		Out: []loader.Field{{Name: "x", DType: dtype.Float32}},
		Apply: func(s *device.Stream, out, in prefetch.Fields) error {
			return kernels.Convert(s, out.Field("x").View, in.Field("x").View, dtype.Float32, dtype.Uint8)
		},
	}})
	check(err)
	defer pf.Close()
	show(pf, "x")
	// Output: [0 40 80][120 160 200]
}

// Several compute streams take batches side by side, each the next that is ready.
func ExampleStreams() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	ld, err := loader.New(Squares{}, 2, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 2}})
	check(err)
	defer pf.Close()
	sums, err := dev.Alloc(5 * 8)
	check(err)
	for batch, err := range pf.All(ctx) {
		check(err)
		sum := sums.View().Slice(int64(8*batch.Position().Batch), 8)
		check(kernels.Checksum(batch.Stream(), sum, batch.Field("y").View)) // not compute, but the batch's
	}
	check(dev.Synchronize(ctx))
	check(sums.Close())
	fmt.Println(pf.Stats().Batches, "batches")
	// Output: 5 batches
}
