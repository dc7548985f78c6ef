package prefetch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/tensors"
)

// Gradient accumulation: a step takes two batches, and both are held until it ends.
func ExampleReader() {
	ctx := context.Background()
	ld, err := loader.New(Squares{}, 2, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 4}}) // more than are held
	check(err)
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
			y, err := tensors.Of(batch.Field("y"))
			check(err)
			fmt.Print(y.Data())
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
	ld, err := loader.New(Squares{}, 2, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
	check(err)
	defer pf.Close()
	reader, err := pf.Open(ctx)
	check(err)
	defer reader.Close()

	batches, sums := make(chan prefetch.Batch), make(chan float32)
	for range 3 {
		go func() {
			var sum float32
			for batch := range batches {
				y, err := tensors.Of(batch.Field("y"))
				check(err)
				for _, v := range y.Data().([]float32) {
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

// A checkpoint: the state goes to a file as JSON, and another process begins with the very
// next sample.
func ExamplePrefetcher_State() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "")
	check(err)
	defer os.RemoveAll(folder)
	checkpoint := filepath.Join(folder, "data.json")
	open := func() *prefetch.Prefetcher {
		ld, err := loader.New(Squares{}, 2, loader.Options{Shuffle: true, Seed: 5, Epochs: 1})
		check(err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		check(err)
		return pf
	}

	first := open()
	for batch, err := range first.Batches(ctx) {
		check(err)
		x, err := tensors.Of(batch.Field("x"))
		check(err)
		fmt.Print(x.Data())
		if batch.Position().Batch == 1 {
			text, err := json.Marshal(first.State()) // the batch in hand counts as delivered
			check(err)
			check(os.WriteFile(checkpoint, text, 0o600))
			break
		}
	}
	check(first.Close())

	second := open()
	text, err := os.ReadFile(checkpoint)
	check(err)
	var state loader.State
	check(json.Unmarshal(text, &state))
	check(second.Restore(state))
	for batch, err := range second.Batches(ctx) {
		check(err)
		x, err := tensors.Of(batch.Field("x"))
		check(err)
		fmt.Print(x.Data())
	}
	check(second.Close())
	// Output: [0 5][9 8][6 7][3 1][4 2]
}
