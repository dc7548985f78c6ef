package prefetch_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Gradient accumulation: a step takes two batches, and both are held until it ends. There
// are slots for more than are held.
func ExampleReader() {
	ctx := context.Background()
	pf := open(2, loader.Options{Epochs: 1})
	defer pf.Close()
	reader, err := pf.Open(ctx)
	check(err)
	defer reader.Close()

	for ended := false; !ended; {
		var held []prefetch.Batch
		for len(held) < 2 {
			batch, err := reader.Next(ctx)
			if ended = errors.Is(err, prefetch.ErrEpochEnd); ended {
				break
			}
			check(err)
			held = append(held, batch)
		}
		for _, batch := range held {
			y, err := prefetch.Column[float32](batch, "y")
			check(err)
			fmt.Print(y)
			batch.Release()
		}
		fmt.Println()
	}
	// Output:
	// [0 1][4 9]
	// [16 25][36 49]
	// [64 81]
}

// Other goroutines release the batches, in their own time: WaitNext waits for them where
// Next would fail, because every slot is held.
func ExampleReader_WaitNext() {
	ctx := context.Background()
	pf := open(2, loader.Options{Epochs: 1})
	defer pf.Close()
	reader, err := pf.Open(ctx)
	check(err)
	defer reader.Close()

	batches, sums := make(chan prefetch.Batch), make(chan float32)
	for range 3 {
		go func() {
			var sum float32
			for batch := range batches {
				y, err := prefetch.Column[float32](batch, "y")
				check(err)
				for _, v := range y {
					sum += v
				}
				batch.Release()
			}
			sums <- sum
		}()
	}
	for {
		batch, err := reader.WaitNext(ctx)
		if errors.Is(err, prefetch.ErrEpochEnd) {
			break
		}
		check(err)
		batches <- batch
	}
	close(batches)
	fmt.Println(<-sums + <-sums + <-sums)
	// Output: 285
}
