package loader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// inOrderOf is a dataset whose sample i is i.
func inOrderOf(n int) loader.Dataset {
	return loader.FromFunc(n, []loader.Field{{Name: "x", DType: dtype.Int64}}, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", int64(i))
	})
}

// stepsOf are the samples of each step of an epoch.
func stepsOf(t require.TestingT, ld *loader.Loader, at loader.Cursor) (steps [][]int64, valid []int, state []loader.State) {
	memory, err := loader.NewHeap(ld.Layout().Size(), 2)
	require.NoError(t, err)
	run := ld.Start(context.Background(), at, memory)
	for {
		b, err := run.Next(context.Background())
		if errors.Is(err, loader.ErrEpochEnd) || errors.Is(err, loader.ErrEnd) {
			break
		}
		require.NoError(t, err)
		rows := make([]int64, b.N)
		for i := range rows {
			rows[i] = int64(ld.Layout().Rows(0, b)[8*i]) | int64(ld.Layout().Rows(0, b)[8*i+1])<<8
		}
		steps, valid, state = append(steps, rows), append(valid, b.Valid), append(state, ld.StateAt(b.After))
		memory.Put(b.Slot)
	}
	require.NoError(t, run.Close())
	return steps, valid, state
}

// A step has the same samples however many devices share it, and a state of any part is
// that of the whole.
func TestDivideKeepsEveryStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(2, 5).Draw(t, "parts")
		rows := rapid.IntRange(1, 4).Draw(t, "rows")
		ranks := rapid.IntRange(1, 2).Draw(t, "ranks")
		o := loader.Options{
			Shuffle: rapid.Bool().Draw(t, "shuffle"), Seed: 3, Epochs: 1, Workers: 3,
			Last:  rapid.SampledFrom([]loader.LastPolicy{loader.Drop, loader.Pad, loader.Exact}).Draw(t, "last"),
			Shard: loader.Shard{Index: rapid.IntRange(0, ranks-1).Draw(t, "rank"), Count: ranks},
		}
		if rapid.Bool().Draw(t, "sizes") {
			o.BatchSizes = []loader.SizeFrom{{Sample: 1 + int64(parts*rows*ranks), BatchSize: 2 * parts}}
		}
		n := rapid.IntRange(2*parts*max(rows, 2)*ranks, 200).Draw(t, "samples")
		ld, err := loader.New(inOrderOf(n), parts*rows, o)
		require.NoError(t, err)
		want, valid, states := stepsOf(t, ld, loader.Cursor{})

		all, err := ld.Divide(parts)
		require.NoError(t, err)
		require.Len(t, all, parts)
		joined, real := make([][]int64, len(want)), make([]int, len(want))
		for _, part := range all {
			steps, v, st := stepsOf(t, part, loader.Cursor{})
			require.Len(t, steps, len(want), "equally many steps")
			require.Equal(t, states, st)
			for i := range steps {
				joined[i], real[i] = append(joined[i], steps[i]...), real[i]+v[i]
			}
		}
		for i := range want {
			require.True(t, slices.Equal(want[i], joined[i]), "step %d is %v, want %v", i, joined[i], want[i])
		}
		require.Equal(t, valid, real)
	})
}

func TestDivideSharesTheWorkers(t *testing.T) {
	for _, c := range []struct {
		workers, parts int
		want           []int
	}{{7, 3, []int{3, 2, 2}}, {8, 2, []int{4, 4}}, {1, 3, []int{1, 1, 1}}, {3, 1, []int{3}}} {
		ld, err := loader.New(inOrderOf(60), 6, loader.Options{Workers: c.workers, Last: loader.Drop})
		require.NoError(t, err)
		parts, err := ld.Divide(c.parts)
		require.NoError(t, err)
		var got []int
		for _, p := range parts {
			got = append(got, p.Options().Workers)
		}
		require.Equal(t, c.want, got, "%d workers", c.workers)
	}
}

func TestDivideRefuses(t *testing.T) {
	ld, err := loader.New(inOrderOf(60), 6, loader.Options{BatchSizes: []loader.SizeFrom{{Sample: 6, BatchSize: 7}}})
	require.NoError(t, err)
	_, err = ld.Divide(4)
	for _, option := range []string{"batchSize", "BatchSizes[0].BatchSize", "Last"} {
		require.ErrorContains(t, err, option)
	}
	for _, n := range []int{0, -1} {
		_, err = ld.Divide(n)
		require.ErrorContains(t, err, fmt.Sprintf("n is %d", n))
	}
	once, err := loader.NewIterable(loader.FromSeq([]loader.Field{{Name: "x", DType: dtype.Int64}}, func(func(int, error) bool) {},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) }), 6, loader.Options{Last: loader.Drop})
	require.NoError(t, err)
	_, err = once.Divide(2)
	require.ErrorContains(t, err, "Divide: ld is a source that gives its samples once")
	whole, err := once.Divide(1)
	require.NoError(t, err)
	require.Same(t, once, whole[0])
}
