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
	copy(row.Bytes("image"), d.pixels[index*d.rowBytes:])
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
		for _, workers := range []int{1, 2, 16} {
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

// BenchmarkRow is what a sample of 784 bytes and a label costs the code that writes it,
// in each of the ways to do so, against a copy of the same bytes without a Row.
func BenchmarkRow(b *testing.B) {
	fields := []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{28, 28}}, {Name: "label", DType: dtype.Int64}}
	image, place, label := make([]byte, 784), make([]byte, 784), new(int64)
	for _, way := range []struct {
		name  string
		write func(row *loader.Row, i int) error
	}{
		{"copy", func(_ *loader.Row, i int) error {
			*label = int64(i)
			copy(place, image)
			return nil
		}},
		{"Bytes", func(row *loader.Row, i int) error {
			copy(row.Bytes("image"), image)
			dtype.As[int64](row.Bytes("label"))[0] = int64(i)
			return nil
		}},
		{"Column", func(row *loader.Row, i int) error {
			copy(loader.Column[uint8](row, "image"), image)
			loader.Column[int64](row, "label")[0] = int64(i)
			return nil
		}},
		{"Write", func(row *loader.Row, i int) error {
			if err := loader.Write(row, "image", image...); err != nil {
				return err
			}
			return loader.Write(row, "label", int64(i))
		}},
	} {
		b.Run("way="+way.name, func(b *testing.B) {
			read := func(_ context.Context, i int, row *loader.Row) error {
				for range b.N {
					if err := way.write(row, i); err != nil {
						return err
					}
				}
				_, _ = row.Bytes("image"), row.Bytes("label")
				return nil
			}
			l, err := loader.New(loader.FromFunc(1, fields, read), 1, loader.Options{Workers: 1, Epochs: 1})
			require.NoError(b, err)
			mem, err := loader.NewHeap(l.Layout().Size(), 1)
			require.NoError(b, err)
			b.SetBytes(784 + 8)
			run := l.Start(b.Context(), loader.Cursor{}, mem)
			_, err = run.Next(b.Context())
			require.NoError(b, err)
			require.NoError(b, run.Close())
		})
	}
}

// BenchmarkRagged is what a batch costs whose samples are as long as text is: of mean 300
// tokens where 2048 are the most, beside one whose samples all have 2048 or 300.
func BenchmarkRagged(b *testing.B) {
	const maximum, mean, batch = 2048, 300, 64
	tokens, lengths := make([]uint16, maximum), make([]int, 1<<12)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range lengths {
		lengths[i] = min(int(r.ExpFloat64()*mean), maximum)
	}
	for _, c := range []struct {
		form  string
		field loader.Field
		of    func(i int) int
	}{
		{"padded", loader.Field{Shape: []int{maximum}, Ragged: &loader.Ragged{Multiple: 8}}, func(i int) int { return lengths[i%len(lengths)] }},
		{"masked", loader.Field{Shape: []int{maximum}, Ragged: &loader.Ragged{Multiple: 8, Length: "n", Mask: "m"}}, func(i int) int { return lengths[i%len(lengths)] }},
		{"packed", loader.Field{Shape: []int{maximum}, Ragged: &loader.Ragged{Offsets: "o"}}, func(i int) int { return lengths[i%len(lengths)] }},
		{"maximum", loader.Field{Shape: []int{maximum}}, func(int) int { return maximum }},
		{"mean", loader.Field{Shape: []int{mean}}, func(int) int { return mean }},
	} {
		b.Run("form="+c.form, func(b *testing.B) {
			c.field.Name, c.field.DType = "tokens", dtype.Uint16
			ds := loader.FromFunc(1<<24, []loader.Field{c.field}, func(_ context.Context, i int, row *loader.Row) error {
				return loader.Write(row, "tokens", tokens[:c.of(i)]...)
			})
			l, err := loader.New(ds, batch, loader.Options{Last: loader.Drop, Workers: 1})
			require.NoError(b, err)
			mem, err := loader.NewHeap(l.Layout().Size(), 8)
			require.NoError(b, err)
			run := l.Start(b.Context(), loader.Cursor{}, mem)
			b.ReportAllocs()
			for b.Loop() {
				filled, err := run.Next(b.Context())
				require.NoError(b, err)
				mem.Put(filled.Slot)
			}
			require.NoError(b, run.Close())
		})
	}
}
