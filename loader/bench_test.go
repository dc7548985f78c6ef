package loader_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// images is a dataset whose samples are rows of one block of memory.
type images struct {
	rowBytes int
	pixels   []byte
}

func newImages(rowBytes, samples int) *images {
	ds := &images{rowBytes: rowBytes, pixels: make([]byte, rowBytes*samples)}
	for i := 0; i < len(ds.pixels); i += 64 {
		ds.pixels[i] = byte(rand.Uint32())
	}
	return ds
}

func (d *images) Len() int { return len(d.pixels) / max(d.rowBytes, 1) }

func (d *images) Fields() []loader.Field {
	return []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{d.rowBytes}}}
}

func (d *images) Read(_ context.Context, index int, row *loader.Row) error {
	copy(row.Bytes(0), d.pixels[index*d.rowBytes:])
	return nil
}

const benchmarkSlots = 4

// BenchmarkFill sets what a loader delivers against the least work that could
// deliver it: goroutines, as many as the loader has workers, that copy the same
// bytes in the same shuffled order, which they find in a table. The two take
// turns, an epoch each, because a machine's memory is faster at one moment than
// at another. of-copy is the loader's rate over the copy's; 0.8 is wanted.
func BenchmarkFill(b *testing.B) {
	for _, size := range []struct{ rowBytes, samples, batch int }{
		{784, 60000, 256}, {784, 60000, 4096}, {150528, 1000, 64},
	} {
		ds := newImages(size.rowBytes, size.samples)
		for _, workers := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("rowBytes=%d/batch=%d/workers=%d", size.rowBytes, size.batch, workers), func(b *testing.B) {
				l, err := loader.New(ds, size.batch, loader.Options{
					Shuffle: true, Last: loader.Drop, Workers: workers, Epochs: 1,
				})
				require.NoError(b, err)
				mem, err := loader.NewHeap(l.Layout().Size(), benchmarkSlots)
				require.NoError(b, err)
				copier := newCopier(b, ds, l, workers)
				fillEpoch(b, l, mem) // touches the pages
				copier.epoch()
				var loading, copying time.Duration
				for b.Loop() {
					began := time.Now()
					fillEpoch(b, l, mem)
					loading += time.Since(began)
					began = time.Now()
					copier.epoch()
					copying += time.Since(began)
				}
				batches, _ := l.Batches()
				samples := float64(b.N * batches * size.batch)
				b.ReportMetric(samples/loading.Seconds(), "samples/s")
				b.ReportMetric(samples*float64(size.rowBytes)/loading.Seconds()/1e9, "GB/s")
				b.ReportMetric(copying.Seconds()/loading.Seconds(), "of-copy")
			})
		}
	}
}

// fillEpoch runs l for an epoch and gives each slot back at once.
func fillEpoch(b *testing.B, l *loader.Loader, mem *loader.Heap) {
	run := l.Start(b.Context(), loader.Cursor{}, mem)
	for {
		filled, err := run.Next(b.Context())
		if err != nil {
			require.Equal(b, loader.ErrEpochEnd, err)
			require.NoError(b, run.Close())
			return
		}
		mem.Put(filled.Slot)
	}
}

// copier copies an epoch's batches without a loader.
type copier struct {
	ds      *images
	workers int
	batch   int
	indices []int
	slots   [benchmarkSlots][]byte
}

func newCopier(b *testing.B, ds *images, l *loader.Loader, workers int) *copier {
	c := &copier{ds: ds, workers: workers, batch: l.Layout().BatchSize()}
	batches, _ := l.Batches()
	c.indices = make([]int, batches*c.batch)
	order := l.Order(0)
	order.Fill(c.indices, 0)
	for i := range c.slots {
		c.slots[i] = make([]byte, l.Layout().Size())
	}
	return c
}

// epoch shares each batch between the goroutines, which wait for nobody.
func (c *copier) epoch() {
	var group sync.WaitGroup
	for worker := range c.workers {
		group.Go(func() {
			lo, hi := worker*c.batch/c.workers, (worker+1)*c.batch/c.workers
			for n := 0; n*c.batch < len(c.indices); n++ {
				slot := c.slots[n%benchmarkSlots]
				for row, index := range c.indices[n*c.batch+lo : n*c.batch+hi] {
					copy(slot[(lo+row)*c.ds.rowBytes:(lo+row+1)*c.ds.rowBytes], c.ds.pixels[index*c.ds.rowBytes:])
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkBatch is what the machinery costs a batch whose samples cost nothing.
func BenchmarkBatch(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("batch=%d/workers=%d", batch, workers), func(b *testing.B) {
				l, err := loader.New(newImages(1, 1<<24), batch, loader.Options{Shuffle: true, Last: loader.Drop, Workers: workers})
				require.NoError(b, err)
				mem, err := loader.NewHeap(l.Layout().Size(), 8)
				require.NoError(b, err)
				run := l.Start(b.Context(), loader.Cursor{}, mem)
				b.ReportAllocs()
				for b.Loop() {
					filled, err := run.Next(b.Context())
					if err == nil {
						mem.Put(filled.Slot)
					} else {
						require.Equal(b, loader.ErrEpochEnd, err)
					}
				}
				require.NoError(b, run.Close())
			})
		}
	}
}
