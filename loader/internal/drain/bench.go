package drain

import (
	"slices"
	"testing"
	"time"

	"github.com/leat-go/leat/loader"
)

// Bench takes shuffled batches of so many samples for as long as a benchmark runs.
func Bench(b *testing.B, ds loader.Dataset, size int) {
	next, done := start(b, ds, size)
	defer done()
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}

// Compare takes turns of a tenth of a second with two datasets, for as long as a benchmark runs,
// and reports the speed of ds as a share of that of plain: the median over the turns, which is
// about the same on a machine that does other things too.
func Compare(b *testing.B, ds, plain loader.Dataset, size int) {
	var shares []float64
	for b.Loop() {
		speed := turn(b, ds, size)
		shares = append(shares, speed/turn(b, plain, size))
	}
	slices.Sort(shares)
	b.ReportMetric(shares[len(shares)/2], "of-plain")
	b.ReportMetric(0, "ns/op")
}

// turn is how many batches a second come in a turn.
func turn(b *testing.B, ds loader.Dataset, size int) float64 {
	next, done := start(b, ds, size)
	defer done()
	for range 8 {
		next()
	}
	began, n := time.Now(), 0
	for time.Since(began) < 100*time.Millisecond {
		next()
		n++
	}
	return float64(n) / time.Since(began).Seconds()
}

// start is a function that takes a batch, and one that ends it all.
func start(b *testing.B, ds loader.Dataset, size int) (next, done func()) {
	ld, err := loader.New(ds, size, loader.Options{Shuffle: true, Last: loader.Drop})
	if err != nil {
		b.Fatal(err)
	}
	mem, err := loader.NewHeap(ld.Layout().Size(), 4)
	if err != nil {
		b.Fatal(err)
	}
	run := ld.Start(b.Context(), loader.Cursor{}, mem)
	next = func() {
		batch, err := run.Next(b.Context())
		if err == loader.ErrEpochEnd {
			batch, err = run.Next(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		mem.Put(batch.Slot)
	}
	return next, func() {
		if err := run.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
