package stream_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// One stream feeds several pipelines at once: each has all of it, in the order of its own
// seed.
func TestOneStreamInSeveralPipelines(t *testing.T) {
	values := make([]int64, 1000)
	for i := range values {
		values[i] = int64(i)
	}
	scaled := stream.MapScratch(stream.FromSlice(values, 4), func() []int64 { return make([]int64, 1) },
		func(_ context.Context, scratch []int64, v int64) (int64, error) {
			scratch[0] = 3 * v
			return scratch[0], nil
		})
	s := stream.Encode(stream.Shuffle(scaled, 50), []loader.Field{{Name: "n", DType: dtype.Int64}},
		func(_ context.Context, n int64, row *loader.Row) error { return loader.Write(row, "n", n) })
	read := func(seed uint64) (all []int64, err error) {
		ld, err := loader.NewStream(s, 8, loader.Options{Seed: seed, Epochs: 2, Workers: 2})
		if err != nil {
			return nil, err
		}
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		if err != nil {
			return nil, err
		}
		defer pf.Close()
		for b, err := range pf.All(t.Context()) {
			if err != nil {
				return nil, err
			}
			n, err := prefetch.Column[int64](b, "n")
			if err != nil {
				return nil, err
			}
			all = append(all, n...)
		}
		return all, nil
	}
	var together sync.WaitGroup
	got, errs := make([][]int64, 4), make([]error, 4)
	for i := range got {
		together.Go(func() { got[i], errs[i] = read(uint64(i / 2)) })
	}
	together.Wait()
	for i := range got {
		require.NoError(t, errs[i])
		alone, err := read(uint64(i / 2))
		require.NoError(t, err)
		require.Equal(t, alone, got[i])
	}
	require.Len(t, got[0], 2000)
	require.Equal(t, got[0], got[1])
	require.NotEqual(t, got[0], got[2])
}
