package loader_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// images is a dataset whose samples are rows of one block of memory.
type images struct {
	rowBytes int
	pixels   []byte
}

func (d *images) Len() int { return len(d.pixels) / d.rowBytes }

func (d *images) Fields() []loader.Field {
	return []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{d.rowBytes}}}
}

func (d *images) Read(_ context.Context, index int, row *loader.Row) error {
	copy(row.Bytes(0), d.pixels[index*d.rowBytes:])
	return nil
}

// BenchmarkFill sets what a loader delivers against the least work that could
// deliver it: goroutines, as many as the loader has workers, that copy the same
// bytes in the same shuffled order, which they find in a table. Both have the
// same number of slots; way=copy is the limit, way=loader should reach 0.8 of it.
func BenchmarkFill(b *testing.B) {
	for _, size := range []struct{ rowBytes, samples, batch int }{
		{784, 60000, 256}, {784, 60000, 4096}, {150528, 1000, 64},
	} {
		ds := &images{rowBytes: size.rowBytes, pixels: make([]byte, size.rowBytes*size.samples)}
		for i := range ds.pixels {
			ds.pixels[i] = byte(rand.Uint32())
		}
		for _, workers := range []int{1, 2} {
			name := fmt.Sprintf("rowBytes=%d/batch=%d/workers=%d", size.rowBytes, size.batch, workers)
			b.Run("way=copy/"+name, func(b *testing.B) { benchmarkCopy(b, ds, size.batch, workers) })
			b.Run("way=loader/"+name, func(b *testing.B) { benchmarkLoader(b, ds, size.batch, workers) })
		}
	}
}

const benchmarkSlots = 4

func benchmarkLoader(b *testing.B, ds *images, batch, workers int) {
	l, err := loader.New(ds, loader.Options{BatchSize: batch, Shuffle: true, Last: loader.Drop, Workers: workers, Epochs: 1 << 40})
	require.NoError(b, err)
	mem, err := loader.NewHeap(l.Layout().Bytes(), benchmarkSlots)
	require.NoError(b, err)
	run := l.Start(b.Context(), loader.Cursor{}, mem)
	defer func() { require.NoError(b, run.Close()) }()
	next := func() {
		for {
			filled, err := run.Next(b.Context())
			if err == nil {
				mem.Put(filled.Slot)
				return
			}
			require.ErrorIs(b, err, loader.ErrEpochEnd)
		}
	}
	for range 2 * benchmarkSlots {
		next() // pages are touched, slots are known
	}
	b.SetBytes(l.Layout().Bytes())
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
	b.ReportMetric(float64(b.N)*float64(batch)/b.Elapsed().Seconds(), "samples/s")
}

func benchmarkCopy(b *testing.B, ds *images, batch, workers int) {
	l, err := loader.New(ds, loader.Options{BatchSize: batch, Shuffle: true, Last: loader.Drop})
	require.NoError(b, err)
	order := l.Order(0)
	indices := make([]int, order.Len()/int64(batch)*int64(batch))
	order.Fill(indices, 0)
	var slots [benchmarkSlots][]byte
	for i := range slots {
		slots[i] = make([]byte, l.Layout().Bytes())
		copy(slots[i], ds.pixels)
	}
	// Each goroutine fills whole batches of its own: nothing is shared and nobody
	// waits for anybody.
	fill := func(worker, batches int) {
		at := worker * batch
		for n := range batches {
			slot := slots[(n*workers+worker)%benchmarkSlots]
			for i, index := range indices[at : at+batch] {
				copy(slot[i*ds.rowBytes:(i+1)*ds.rowBytes], ds.pixels[index*ds.rowBytes:])
			}
			at = (at + workers*batch) % len(indices)
			if at+batch > len(indices) {
				at = 0
			}
		}
	}
	b.SetBytes(l.Layout().Bytes())
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() { fill(worker, (b.N+workers-1-worker)/workers) })
	}
	group.Wait()
	b.ReportMetric(float64(b.N)*float64(batch)/b.Elapsed().Seconds(), "samples/s")
}
