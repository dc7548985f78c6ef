package drain

import (
	"testing"

	"github.com/leat-go/leat/loader"
)

// Bench takes shuffled batches of so many samples for as long as a benchmark runs.
func Bench(b *testing.B, ds loader.Dataset, size int) {
	ld, err := loader.New(ds, size, loader.Options{Shuffle: true, Last: loader.Drop})
	if err != nil {
		b.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 4)
	if err != nil {
		b.Fatal(err)
	}
	run := ld.Start(b.Context(), loader.Cursor{}, mem)
	defer run.Close()
	b.SetBytes(ld.Layout().Size())
	b.ReportAllocs()
	for b.Loop() {
		batch, err := run.Next(b.Context())
		if err == loader.ErrEpochEnd {
			batch, err = run.Next(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		mem.Put(batch.Slot)
	}
}
