package loader_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// cutImages is images as a stream of equal shards.
type cutImages struct {
	*images
	shards int
	free   sync.Pool
}

func (c *cutImages) Shards() int { return c.shards }

func (c *cutImages) Open(_ context.Context, _ loader.Pass, shard int, mark []byte) (loader.ShardReader, error) {
	r := &imageReader{cut: c, from: shard * c.Len() / c.shards, to: (shard + 1) * c.Len() / c.shards}
	if mark != nil {
		n, err := strconv.Atoi(string(mark))
		r.n = n
		return r, err
	}
	return r, nil
}

type imageReader struct {
	cut      *cutImages
	from, to int
	n        int
}

func (r *imageReader) Next(context.Context) (loader.Encoder, bool, error) {
	if r.from+r.n == r.to {
		return nil, false, nil
	}
	e, ok := r.cut.free.Get().(*oneImage)
	if !ok {
		e = &oneImage{cut: r.cut}
	}
	e.index = r.from + r.n
	r.n++
	return e, true, nil
}

func (r *imageReader) AppendMark(dst []byte) ([]byte, error) {
	return strconv.AppendInt(dst, int64(r.n), 10), nil
}

func (r *imageReader) Close() error { return nil }

type oneImage struct {
	cut   *cutImages
	index int
}

func (e *oneImage) Encode(ctx context.Context, row *loader.Row) error {
	c, index := e.cut, e.index
	c.free.Put(e)
	return c.Read(ctx, index, row)
}

// BenchmarkStream sets a stream of 8 shards against random access to the same samples,
// shuffled and in the order of their indices. The three take turns, an epoch each. of-shuffled
// and of-index are the stream's rate over theirs; 0.5 of each is wanted, of the fast way: with
// skips=true the shards encode.
func BenchmarkStream(b *testing.B) {
	ds := newImages(784, 60000)
	for _, skips := range []bool{false, true} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("rowBytes=784/batch=256/shards=8/skips=%t/workers=%d", skips, workers), func(b *testing.B) {
				o := loader.Options{Last: loader.Drop, Workers: workers, Epochs: 1, Shuffle: true}
				random, err := loader.New(ds, 256, o)
				require.NoError(b, err)
				o.Shuffle = false
				inOrder, err := loader.New(ds, 256, o)
				require.NoError(b, err)
				o.Skips = skips
				stream, err := loader.NewStream(&cutImages{images: ds, shards: 8}, 256, o)
				require.NoError(b, err)
				mem, err := loader.NewHeap(random.Layout().Size(), benchmarkSlots)
				require.NoError(b, err)
				fillEpoch(b, random, mem) // touches the pages
				loaders := [...]*loader.Loader{stream, random, inOrder}
				var took [len(loaders)]time.Duration
				for b.Loop() {
					for i, l := range loaders {
						began := time.Now()
						fillEpoch(b, l, mem)
						took[i] += time.Since(began)
					}
				}
				batches, _ := random.Batches()
				samples := float64(b.N * batches * 256)
				b.ReportMetric(samples/took[0].Seconds(), "samples/s")
				b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "of-shuffled")
				b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "of-index")
				b.ReportAllocs()
			})
		}
	}
}
