package meter_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/meter"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Squares is a dataset: sample i is i squared.
type Squares struct{}

func (Squares) Len() int { return 10 }

func (Squares) Fields() []loader.Field { return []loader.Field{{Name: "y", DType: dtype.Float32}} }

func (Squares) Read(_ context.Context, i int, row *loader.Row) error {
	return loader.Write(row, "y", float32(i*i))
}

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

// A step leaves its loss in device memory, and the meter shows it some steps later. No
// step waits for that.
func ExampleMeter() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	loss, err := dev.Alloc(4)
	check(err)
	defer loss.Close()
	losses, err := meter.New[float32](dev)
	check(err)
	defer losses.Close()
	ld, err := loader.New(Squares{}, 5, loader.Options{})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	for batch, err := range pf.Batches(ctx) {
		check(err)
		// The step: here a kernel, on the batch's stream.
		launch := device.Launch{Kernel: mean, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		loss.View().Out(&launch.Args)
		batch.Field("y").View.In(&launch.Args)
		check(batch.Stream().Launch(&launch))

		check(losses.Push(batch.Stream(), loss.View()))
		value, step, err := losses.Latest() // what has arrived by now; step 0 if nothing has
		check(err)
		_, _ = value, step // for a log
	}
	check(compute.Synchronize(ctx)) // so that the last one has arrived
	value, step, err := losses.Latest()
	check(err)
	fmt.Printf("step %d: loss %v\n", step, value)
	// Output: step 2: loss 51
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
