package loader_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// costly gives numbers, each of which takes as long to write as takes says.
type costly struct {
	name string
	open func(t *testing.T, n, batchSize int, takes func(int) time.Duration, o loader.Options) *loader.Loader
}

var sources = []costly{
	{"dataset", func(t *testing.T, n, batchSize int, takes func(int) time.Duration, o loader.Options) *loader.Loader {
		return newNumbers(t, numbers{n: n, before: func(_ context.Context, index int, _ *loader.Row) error {
			time.Sleep(takes(index))
			return nil
		}}, batchSize, o)
	}},
	{"iterable", func(t *testing.T, n, batchSize int, takes func(int) time.Duration, o loader.Options) *loader.Loader {
		samples := func(context.Context, loader.Pass) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range n {
					if !yield(i, nil) {
						return
					}
				}
			}
		}
		encode := func(_ context.Context, index int, row *loader.Row) error {
			time.Sleep(takes(index))
			writeNumber(index, row)
			return nil
		}
		l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, samples, encode), batchSize, o)
		require.NoError(t, err)
		return l
	}},
}

// elapsed is how long a Run takes whose batches are given back at once.
func elapsed(t *testing.T, l *loader.Loader, slots int) (took time.Duration, stats loader.Stats) {
	synctest.Test(t, func(t *testing.T) {
		mem := heap(t, l, slots)
		began := time.Now()
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		_, err := readEpoch(l, run, mem)
		require.Equal(t, loader.ErrEpochEnd, err)
		took = time.Since(began)
		stats = run.Stats()
		require.NoError(t, run.Close())
	})
	return took, stats
}

// However the costs of samples change, the workers share them: a Run takes no longer
// than 1.3 times what it would if all workers were busy until all ended at once.
func TestWorkersShareSamplesWhateverTheyCost(t *testing.T) {
	const cheap, dear = 100 * time.Nanosecond, 2 * time.Millisecond
	const batchSize, batches = 1024, 4
	const n = batchSize * batches
	for _, shape := range []struct {
		name  string
		takes func(index int) time.Duration
	}{
		{"cheap then dear", func(i int) time.Duration {
			if i < n/2 {
				return cheap
			}
			return dear
		}},
		{"cheap then dear in the middle of a batch", func(i int) time.Duration {
			if i < n/2+batchSize/2 {
				return cheap
			}
			return dear
		}},
		{"dear then cheap", func(i int) time.Duration {
			if i < n/2 {
				return dear
			}
			return cheap
		}},
		{"one dear", func(i int) time.Duration {
			if i == n/2+batchSize/3 {
				return 50 * dear
			}
			return cheap
		}},
		{"alternating", func(i int) time.Duration {
			if i%2 == 0 {
				return cheap
			}
			return dear
		}},
		{"long alternating", func(i int) time.Duration {
			if i/100%2 == 0 {
				return cheap
			}
			return dear
		}},
		{"dear at each batch's end", func(i int) time.Duration {
			if i%batchSize < batchSize-100 {
				return cheap
			}
			return dear
		}},
		{"dear at each batch's beginning", func(i int) time.Duration {
			if i%batchSize >= 100 {
				return cheap
			}
			return dear
		}},
		{"dear", func(int) time.Duration { return dear }},
	} {
		var sum, longest time.Duration
		for i := range n {
			sum += shape.takes(i)
			longest = max(longest, shape.takes(i))
		}
		for _, source := range sources {
			for _, workers := range []int{1, 2, 8} {
				for _, slots := range []int{1, 2, 4} {
					t.Run(fmt.Sprintf("%s/%s/workers=%d/slots=%d", shape.name, source.name, workers, slots), func(t *testing.T) {
						l := source.open(t, n, batchSize, shape.takes, loader.Options{Workers: workers, Epochs: 1})
						took, stats := elapsed(t, l, slots)
						ideal := max(sum/time.Duration(workers), longest)
						require.GreaterOrEqual(t, took, ideal)
						require.LessOrEqual(t, took, ideal*13/10)
						var busy time.Duration
						for _, b := range stats.Busy {
							busy += b
						}
						require.Equal(t, sum, busy)
					})
				}
			}
		}
	}
}
