package capture_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// Rates are what changes from step to step. In CUDA C it is struct { float rate; }.
type Rates struct{ Rate float32 }

// descend is a step of gradient descent for y = 3x: a Go function for the CPU device. For
// a GPU the Kernel would name a Module of PTX too.
var descend = &device.Kernel{
	Name: "descend",
	Go: func(a *device.Args) {
		w, x := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
		rates := device.Elements[Rates](a, 2)[0]
		var gradient float32
		for _, v := range x {
			gradient += (w[0]*v - 3*v) * v / float32(len(x))
		}
		w[0] -= rates.Rate * gradient
	},
}

// numbers is a dataset of the numbers from 0 to 1.
func numbers() loader.Dataset {
	return loader.FromFunc(64, []loader.Field{{Name: "x", DType: dtype.Float32}},
		func(_ context.Context, i int, row *loader.Row) error {
			return loader.Write(row, "x", float32(i)/63)
		})
}

func Example() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	w, err := dev.Alloc(4)
	check(err)
	defer w.Close()
	check(compute.Memset(w.View(), 0))
	ld, err := loader.New(numbers(), 8, loader.Options{Shuffle: true, Seed: 1, Epochs: 25})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	submit := func(s *device.Stream, batch capture.Batch, params device.View) error {
		launch := device.Launch{Kernel: descend, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		w.View().InOut(&launch.Args)
		batch.Field("x").View.In(&launch.Args)
		params.In(&launch.Args)
		return s.Launch(&launch)
	}
	step, err := capture.New[Rates](pf, submit, capture.Options{})
	check(err)
	defer step.Close()
	n := 0
	for batch, err := range pf.All(ctx) {
		check(err)
		check(step.Run(batch, Rates{Rate: 1 / float32(1+n/100)}))
		n++
	}

	host, err := dev.AllocHost(4, device.HostOptions{})
	check(err)
	defer host.Close()
	check(compute.CopyD2H(host.Bytes(), w.View()))
	check(compute.Synchronize(ctx))
	report := step.Report()
	fmt.Printf("%d steps, w = %.3f\n", n, dtype.As[float32](host.Bytes())[0])
	fmt.Println("in all steps the same, but for the rate:", report.Reason == nil)
	// Output:
	// 200 steps, w = 3.000
	// in all steps the same, but for the rate: true
}

// A step with a rate that is an argument of its launch, and changes, is not replayed. The
// report says which kernel and which argument it is.
func ExampleStep_Report() {
	dev, err := cpu.Open(cpu.Options{})
	check(err)
	defer dev.Close()
	compute, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer compute.Close()
	out, err := dev.Alloc(8 * 4)
	check(err)
	defer out.Close()
	ld, err := loader.New(numbers(), 8, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	rate := float32(1)
	submit := func(s *device.Stream, batch capture.Batch, _ device.View) error {
		launch := device.Launch{Kernel: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
		out.View().Out(&launch.Args)
		batch.Field("x").View.In(&launch.Args)
		launch.Args.AddFloat32(rate) // baked in
		return s.Launch(&launch)
	}
	step, err := capture.New[struct{}](pf, submit, capture.Options{})
	check(err)
	defer step.Close()
	for batch, err := range pf.All(context.Background()) {
		check(err)
		check(step.Run(batch, struct{}{}))
		rate /= 2
	}
	fmt.Println(step.Report().Reason)
	// Output:
	// capture: batch 1 of epoch 0: the step is not what was captured: node 0, kernel "scale": argument 2: 0x3f800000 (int32 1065353216, float32 1), then 0x3f000000 (int32 1056964608, float32 0.5): give what changes to Run
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
