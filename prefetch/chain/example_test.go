package chain_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// Photos is a dataset of 10 RGB images of 32×32, each with a label.
type Photos struct{}

func (Photos) Len() int { return 10 }

func (Photos) Fields() []loader.Field {
	return []loader.Field{
		{Name: "image", DType: dtype.Uint8, Shape: []int{32, 32, 3}},
		{Name: "label", DType: dtype.Int64},
	}
}

func (Photos) Read(_ context.Context, i int, row *loader.Row) error {
	image := row.Bytes("image")
	for j := range image {
		image[j] = byte(i + j)
	}
	return loader.Write(row, "label", int64(i%4))
}

// Bytes cross the bus, and what compute sees is ready: cropped at random by the
// loader's seed, normalised, float16, with the channels in front.
func ExampleNew() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()

	transform, err := chain.New(Photos{}.Fields(),
		chain.Crop("image", 28, 28, chain.CropOptions{Pad: 2, FlipProbability: 0.5}),
		chain.Normalize("image", chain.NormalizeOptions{
			Mean:   []float32{0.485, 0.456, 0.406},
			Std:    []float32{0.229, 0.224, 0.225},
			Layout: kernels.ToPlanar,
			Out:    dtype.Float16,
		}),
		chain.OneHot("label", 4))
	check(err)
	ld, err := loader.New(Photos{}, 5, loader.Options{Shuffle: true, Seed: 7})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{Transform: transform})
	check(err)
	defer pf.Close()

	for batch, err := range pf.Batches(context.Background()) {
		check(err)
		for _, f := range batch.Fields() {
			fmt.Println(f.Name, f.DType, f.Shape)
		}
	}
	// Output:
	// image float16 [5 3 28 28]
	// label float32 [5 4]
	// image float16 [5 3 28 28]
	// label float32 [5 4]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
