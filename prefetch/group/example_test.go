package group_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// Each step has four rows, two on each device.
func Example() {
	data := loader.FromFunc(8, []loader.Field{{Name: "x", DType: dtype.Uint8}}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", uint8(i))
	})
	ld, err := loader.New(data, 4, loader.Options{Epochs: 1, Last: loader.Drop})
	check(err)

	var streams []*device.Stream
	for range 2 {
		dev, err := cpu.Open(cpu.Options{})
		check(err)
		defer dev.Close()
		stream, err := dev.NewStream(device.StreamOptions{})
		check(err)
		defer stream.Close()
		streams = append(streams, stream)
	}

	g, err := group.New(streams, ld, prefetch.Options{})
	check(err)
	defer g.Close()
	x := make([]byte, 2)
	for step, err := range g.All(context.Background()) {
		check(err)
		for i, batch := range step.Batches {
			check(batch.Stream().CopyD2H(x, batch.Field("x").View)) // in place of a model's step
			check(batch.Stream().Synchronize(context.Background()))
			fmt.Println("step", step.Position().Batch, "device", i, x)
		}
	}
	// Output:
	// step 0 device 0 [0 1]
	// step 0 device 1 [2 3]
	// step 1 device 0 [4 5]
	// step 1 device 1 [6 7]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Two devices, of which the second takes three times as long for a batch.
func ExamplePool() {
	data := loader.FromFunc(12, []loader.Field{{Name: "x", DType: dtype.Uint8}}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", uint8(i))
	})
	ld, err := loader.New(data, 1, loader.Options{})
	check(err)

	var streams []*device.Stream
	for range 2 {
		dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{}})
		check(err)
		defer dev.Close()
		stream, err := dev.NewStream(device.StreamOptions{})
		check(err)
		defer stream.Close()
		streams = append(streams, stream)
	}

	p, err := group.NewPool(streams, ld, prefetch.Options{})
	check(err)
	defer p.Close()
	work := func(i int, b prefetch.Batch, out prefetch.Fields) error {
		return errors.Join(
			b.Stream().Launch(cpu.Busy([]time.Duration{time.Millisecond, 3 * time.Millisecond}[i])), // in place of a model
			b.Stream().CopyD2D(out.Field("y").View, b.Field("x").View))
	}
	output := prefetch.Output{Fields: []loader.Field{{Name: "y", DType: dtype.Uint8}}}
	for result, err := range p.Map(context.Background(), output, work) {
		check(err)
		fmt.Print(result.Field("y").Bytes)
	}
	fmt.Println()
	shares := p.Stats().Shares
	fmt.Println("both together:", shares[0].Batches+shares[1].Batches)
	// Output:
	// [0][1][2][3][4][5][6][7][8][9][10][11]
	// both together: 12
}
