// Hello is the smallest whole program: eight samples, in batches of three, on the
// first GPU or, where there is none, on the CPU device.
//
//	go run ./examples/hello
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dev, err := auto.Open("")
	if err != nil {
		return err
	}
	defer dev.Close()
	for _, note := range dev.Notes() {
		fmt.Println(note)
	}
	compute, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		return err
	}
	defer compute.Close()
	ds := loader.FromSlice([]float32{0, 1, 2, 3, 4, 5, 6, 7}, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, x float32, row *loader.Row) error {
			return loader.Write(row, "x", x)
		})
	ld, err := loader.New(ds, 3, loader.Options{Shuffle: true, Epochs: 1})
	if err != nil {
		return err
	}
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	if err != nil {
		return err
	}
	defer pf.Close()
	for batch, err := range pf.All(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("batch %d on %s: %d samples, %d bytes\n",
			batch.Position().Batch, dev.Name(), batch.Len(), batch.Field("x").View.Size())
	}
	return nil
}
