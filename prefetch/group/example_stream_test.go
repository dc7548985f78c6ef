package group_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// A stream is no Group's: each device is a rank of it, with a pipeline of its own.
func Example_stream() {
	ctx := context.Background()
	values := stream.FromSlice([]uint8{0, 1, 2, 3, 4, 5, 6, 7}, 4) // of four shards
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8}}
	data := stream.Encode(values, fields, func(_ context.Context, v uint8, row *loader.Row) error {
		return loader.Write(row, "x", v)
	})

	const devices, steps = 2, 2
	var readers []*prefetch.Reader
	var pipelines []*prefetch.Prefetcher
	for i := range devices {
		dev, err := cpu.Open(cpu.Options{})
		check(err)
		defer dev.Close()
		compute, err := dev.NewStream(device.StreamOptions{})
		check(err)
		defer compute.Close()
		ld, err := loader.NewStream(data, 2, loader.Options{
			Shard: loader.Shard{Index: i, Count: devices}, Steps: steps, Epochs: 1, Workers: 1,
		})
		check(err)
		pf, err := prefetch.New(compute, ld, prefetch.Options{})
		check(err)
		defer pf.Close()
		reader, err := pf.Open(ctx)
		check(err)
		defer reader.Close()
		pipelines, readers = append(pipelines, pf), append(readers, reader)
	}

	x := make([]byte, 2)
	for step := range steps {
		for i, reader := range readers {
			batch, err := reader.Next(ctx)
			check(err)
			check(batch.Stream().CopyD2H(x, batch.Field("x").View)) // in place of a model's step
			check(batch.Stream().Synchronize(ctx))
			fmt.Println("step", step, "device", i, x)
			batch.Release()
		}
	}
	state, err := loader.MergeStates(pipelines[0].State(), pipelines[1].State())
	check(err)
	fmt.Println("epoch", state.Epoch)
	// Output:
	// step 0 device 0 [0 2]
	// step 0 device 1 [1 3]
	// step 1 device 0 [4 6]
	// step 1 device 1 [5 7]
	// epoch 1
}
