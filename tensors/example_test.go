package tensors_test

import (
	"context"
	"fmt"
	"log"

	"gorgonia.org/tensor"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// host opens a pipeline of batches of four in host memory.
func host(ds loader.Dataset) *prefetch.Prefetcher {
	ld, err := loader.New(ds, 4, loader.Options{})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return pf
}

// squares is 0 to 9 and their squares.
func squares() loader.Dataset {
	x, y := make([]float32, 10), make([]float32, 10)
	for i := range x {
		x[i], y[i] = float32(i), float32(i*i)
	}
	ds, err := tensors.Dataset([]string{"x", "y"},
		tensor.New(tensor.WithShape(10), tensor.WithBacking(x)),
		tensor.New(tensor.WithShape(10), tensor.WithBacking(y)))
	if err != nil {
		log.Fatal(err)
	}
	return ds
}

// The loop of a program that computes with package tensor.
func ExampleCache() {
	pf := host(squares())
	defer pf.Close()
	var dense tensors.Cache
	for batch, err := range pf.Batches(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		x, err := dense.Of(batch.Field("x"))
		if err != nil {
			log.Fatal(err)
		}
		y, err := dense.Of(batch.Field("y"))
		if err != nil {
			log.Fatal(err)
		}
		sum, err := x.Add(y)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(x.Shape(), sum.Data())
	}
	// Output:
	// (4) [0 2 6 12]
	// (4) [20 30 42 56]
	// (2) [72 90]
}

// One tensor, without a Cache.
func ExampleOf() {
	pf := host(squares())
	defer pf.Close()
	for batch, err := range pf.Batches(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		y, err := tensors.Of(batch.Field("y"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(y.Data())
		break
	}
	// Output:
	// [0 1 4 9]
}

// A tensor of Of is the batch's memory, which later batches use again. One that is
// kept is a copy.
func ExampleClone() {
	pf := host(squares())
	var kept []*tensor.Dense
	for batch, err := range pf.Batches(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		y, err := tensors.Clone(batch.Field("y"))
		if err != nil {
			log.Fatal(err)
		}
		kept = append(kept, y)
	}
	fmt.Println(pf.Close())
	for _, y := range kept {
		fmt.Println(y.Data())
	}
	// Output:
	// <nil>
	// [0 1 4 9]
	// [16 25 36 49]
	// [64 81]
}

func ExampleDataset() {
	x := tensor.New(tensor.WithShape(3, 2), tensor.WithBacking([]float32{0, 1, 2, 3, 4, 5}))
	y := tensor.New(tensor.WithShape(3), tensor.WithBacking([]int64{7, 8, 9}))
	ds, err := tensors.Dataset([]string{"x", "y"}, x, y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ds.Len(), ds.Fields())

	_, err = tensors.Dataset([]string{"x", "y"}, x, tensor.New(tensor.WithShape(2), tensor.Of(tensor.String)))
	fmt.Println(err)
	// Output:
	// 3 [x float32[2] y int64]
	// tensors: field "y" has elements of type string, want bool, an integer or a float
}
