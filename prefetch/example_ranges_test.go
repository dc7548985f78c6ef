package prefetch_test

import (
	"context"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Validation beside training: behind each epoch a pass over other samples, which begins at
// the first of them every time, also where the one before was left early.
func ExamplePrefetcher_Epochs() {
	ctx := context.Background()
	train := open(4, loader.Options{Shuffle: true, Seed: 1, Epochs: 3})
	defer train.Close()
	validation := open(4, loader.Options{})
	defer validation.Close()
	for epoch, batches := range train.Epochs(ctx) {
		trained := 0
		for batch, err := range batches {
			check(err)
			trained += batch.Len()
		}
		var sum float32
		for batch, err := range validation.Pass(ctx) {
			check(err)
			y, err := prefetch.Column[float32](batch, "y")
			check(err)
			for _, v := range y {
				sum += v
			}
			if sum > 100 {
				break // it has seen enough
			}
		}
		fmt.Printf("epoch %d: trained on %d samples, validation %v\n", epoch, trained, sum)
	}
	// Output:
	// epoch 0: trained on 10 samples, validation 140
	// epoch 1: trained on 10 samples, validation 140
	// epoch 2: trained on 10 samples, validation 140
}

// A loop over all epochs that a body leaves: the next one goes on with the next batch.
func ExamplePrefetcher_All() {
	ctx := context.Background()
	pf := open(4, loader.Options{Epochs: 2})
	defer pf.Close()
	steps := 0
	for batch, err := range pf.All(ctx) {
		check(err)
		fmt.Println(batch.Position())
		if steps++; steps == 2 {
			break
		}
	}
	fmt.Println("and later")
	for batch, err := range pf.All(ctx) {
		check(err)
		fmt.Println(batch.Position())
	}
	// Output:
	// {0 0 0}
	// {0 1 4}
	// and later
	// {0 2 8}
	// {1 0 0}
	// {1 1 4}
	// {1 2 8}
}

// The first batches are read while the model is loaded.
func ExamplePrefetcher_Start() {
	ctx := context.Background()
	pf := open(4, loader.Options{Epochs: 1})
	defer pf.Close()
	check(pf.Start(ctx))
	weight := func() float32 { return 0.5 }() // which takes a while
	for batch, err := range pf.All(ctx) {
		check(err)
		x, err := prefetch.Column[float32](batch, "x")
		check(err)
		fmt.Println(weight * x[0])
	}
	// Output:
	// 0
	// 2
	// 4
}

// Each of two ranks takes its part of every global batch; both make equally many steps.
func Example_shard() {
	for rank := range 2 {
		pf := open(3, loader.Options{Shuffle: true, Seed: 1, Epochs: 1, Last: loader.Exact, Shard: loader.Shard{Index: rank, Count: 2}})
		fmt.Print("rank ", rank, ": ")
		show(pf, "x")
		check(pf.Close())
	}
	// Output:
	// rank 0: [2 6 3][0 7 5]
	// rank 1: [8 9 1][4]
}

// show prints a field of all batches that are left.
func show(pf *prefetch.Prefetcher, field string) {
	for batch, err := range pf.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		x, err := prefetch.Column[float32](batch, field)
		check(err)
		fmt.Print(x)
	}
	fmt.Println()
}
