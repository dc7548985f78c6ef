package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// Squares is a dataset of one's own: sample i is i and its square.
type Squares struct{}

func (Squares) Len() int { return 10 }

func (Squares) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Float32}, {Name: "y", DType: dtype.Float32}}
}

func (Squares) Read(_ context.Context, i int, row *loader.Row) error {
	return errors.Join(loader.Write(row, "x", float32(i)), loader.Write(row, "y", float32(i*i)))
}

// A host consumer reads the pinned slots themselves: as bytes, or by package
// tensors as tensors.
func ExampleNewHost() {
	ld, err := loader.New(Squares{}, 4, loader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	for batch, err := range pf.Batches(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		y, err := tensors.Of(batch.Field("y"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Position().Batch, y.Data())
	}
	// Output:
	// 0 [0 1 4 9]
	// 1 [16 25 36 49]
	// 2 [64 81]
}

// With a device the loop submits work and waits for nobody.
func ExamplePrefetcher_Batches() {
	ctx := context.Background()
	dev, err := cpu.Open(cpu.Options{}) // or auto.Open("")
	if err != nil {
		log.Fatal(err)
	}
	compute, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(Squares{}, 4, loader.Options{Epochs: 2})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.New(compute, ld, prefetch.Options{Depth: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	sums, err := dev.Alloc(8)
	if err != nil {
		log.Fatal(err)
	}
	for pf.Epoch() < 2 {
		for batch, err := range pf.Batches(ctx) {
			if err != nil {
				log.Fatal(err)
			}
			if err := kernels.Checksum(batch.Stream(), sums.View(), batch.Field("y").View); err != nil {
				log.Fatal(err)
			}
		}
	}
	if err := compute.Synchronize(ctx); err != nil {
		log.Fatal(err)
	}
	s := pf.Stats()
	fmt.Println(s.Batches, "batches,", s.Samples, "samples")
	// Output: 6 batches, 20 samples
}

// Map computes on the device and brings results back, all three at once.
func ExamplePrefetcher_Map() {
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		log.Fatal(err)
	}
	compute, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ld, err := loader.New(Squares{}, 4, loader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	out := prefetch.Output{Fields: []loader.Field{{Name: "half", DType: dtype.Float16}}}
	results := pf.Map(context.Background(), out, func(b prefetch.Batch, out prefetch.Fields) error {
		return kernels.Convert(b.Stream(), out.Field("half").View, b.Field("y").View, dtype.Float16, dtype.Float32)
	})
	for r, err := range results {
		if err != nil {
			log.Fatal(err)
		}
		half := r.Field("half").Bytes
		last := uint16(half[len(half)-2]) | uint16(half[len(half)-1])<<8
		fmt.Println(r.Position().Batch, kernels.FromFloat16(last))
	}
	// Output:
	// 0 9
	// 1 49
	// 2 81
}

// Training stops in the middle of an epoch and goes on elsewhere, with other
// workers and another depth, at the very next sample.
func ExamplePrefetcher_Restore() {
	open := func(workers int) *prefetch.Prefetcher {
		ld, err := loader.New(Squares{}, 2, loader.Options{Shuffle: true, Seed: 5, Workers: workers})
		if err != nil {
			log.Fatal(err)
		}
		pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: workers + 1}})
		if err != nil {
			log.Fatal(err)
		}
		return pf
	}
	show := func(pf *prefetch.Prefetcher, batches int) {
		for batch, err := range pf.Batches(context.Background()) {
			if err != nil {
				log.Fatal(err)
			}
			x, err := tensors.Of(batch.Field("x"))
			if err != nil {
				log.Fatal(err)
			}
			fmt.Print(x.Data())
			if batches--; batches == 0 {
				break
			}
		}
	}
	whole := open(1)
	defer whole.Close()
	show(whole, 0)
	fmt.Println()

	first := open(2)
	defer first.Close()
	show(first, 2)
	state := first.State() // a small value; it marshals to JSON

	second := open(7)
	defer second.Close()
	if err := second.Restore(state); err != nil {
		log.Fatal(err)
	}
	show(second, 0)
	// Output:
	// [0 5][9 8][6 7][3 1][4 2]
	// [0 5][9 8][6 7][3 1][4 2]
}
