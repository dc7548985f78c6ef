package drain

import (
	"context"
	"testing"

	"github.com/leat-go/leat/loader"
)

// Allocs is how many allocations a batch costs, over all goroutines, once the loader has read
// some hundreds.
func Allocs(ctx context.Context, ds loader.Dataset, size int) (float64, error) {
	ld, err := loader.New(ds, size, loader.Options{Shuffle: true, Last: loader.Drop, Workers: 2})
	if err != nil {
		return 0, err
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 3)
	if err != nil {
		return 0, err
	}
	run := ld.Start(ctx, loader.Cursor{}, mem)
	next := func() {
		batch, again := run.Next(ctx)
		if again == loader.ErrEpochEnd {
			batch, again = run.Next(ctx)
		}
		if again != nil {
			err = again
			return
		}
		mem.Put(batch.Slot)
	}
	for range 300 {
		next()
	}
	allocs := testing.AllocsPerRun(300, next)
	if closed := run.Close(); err == nil {
		err = closed
	}
	return allocs, err
}
