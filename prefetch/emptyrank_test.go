package prefetch_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	streams "github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// A rank that has no samples makes the steps of the others, with empty batches at position
// 0. Left behind the last of them it is at the epoch's end as they are, and the next range is
// the next epoch on all ranks.
func TestARankWithoutSamplesKeepsStep(t *testing.T) {
	// Of two shards in turn the second has no value: all of them are in the first.
	values := streams.Filter(streams.FromSlice([]int32{0, -1, 1, -1, 2, -1, 3, -1, 4}, 2), func(v int32) bool { return v >= 0 })
	data := streams.Encode(values, []loader.Field{{Name: "value", DType: dtype.Int32}}, func(_ context.Context, v int32, row *loader.Row) error {
		loader.Column[int32](row, "value")[0] = v
		return nil
	})
	agree := reduced(2)
	var epochs [2][]int // of the batches
	var errs [2]error
	var ranks sync.WaitGroup
	for rank := range 2 {
		ld, err := loader.NewStream(data, 2, loader.Options{
			Epochs: 2, Last: loader.Exact, Shard: loader.Shard{Index: rank, Count: 2}, Agree: agree,
		})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		ranks.Go(func() {
			for range 2 {
				steps := 0
				for b, err := range pf.Batches(t.Context()) {
					if errs[rank] = err; err != nil {
						return
					}
					epochs[rank] = append(epochs[rank], b.Position().Epoch)
					if steps++; steps == 3 {
						break
					}
				}
			}
			errs[rank] = pf.Close()
		})
	}
	ranks.Wait()
	for rank := range 2 {
		require.NoError(t, errs[rank])
		require.Equal(t, []int{0, 0, 0, 1, 1, 1}, epochs[rank])
	}
}

// reduced is an all-reduce between the goroutines of so many ranks.
func reduced(ranks int) func(ctx context.Context, rows int, _ error) (least, most int, err error) {
	type reduction struct {
		rows []int
		done chan struct{}
	}
	var mu sync.Mutex
	next := &reduction{done: make(chan struct{})}
	return func(ctx context.Context, rows int, _ error) (least, most int, err error) {
		mu.Lock()
		r := next
		if r.rows = append(r.rows, rows); len(r.rows) == ranks {
			next = &reduction{done: make(chan struct{})}
			close(r.done)
		}
		mu.Unlock()
		select {
		case <-r.done:
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
		least, most = r.rows[0], r.rows[0]
		for _, n := range r.rows {
			least, most = min(least, n), max(most, n)
		}
		return least, most, nil
	}
}
