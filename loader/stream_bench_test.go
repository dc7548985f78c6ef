package loader_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// BenchmarkStream sets a stream of 8 shards, of indices that are encoded by the dataset, against random access to the same samples,
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
				indices := make([]int, ds.Len())
				for i := range indices {
					indices[i] = i
				}
				stream, err := loader.NewStream(stream.Encode(stream.FromSlice(indices, 8), ds.Fields(), ds.Read), 256, o)
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
