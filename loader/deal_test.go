package loader_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Whoever takes the next step, together they make each once, with the rows that it has in
// the whole.
func TestDealtStepsAreThoseOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pipelines := rapid.IntRange(1, 4).Draw(t, "pipelines")
		samples := rapid.IntRange(1, 60).Draw(t, "samples")
		batch := rapid.IntRange(1, min(samples, 7)).Draw(t, "batch")
		ld, err := loader.New(inOrderOf(samples), batch, loader.Options{
			Shuffle: true, Seed: 9, Workers: 3,
			Last: rapid.SampledFrom([]loader.LastPolicy{loader.Keep, loader.Drop, loader.Pad}).Draw(t, "last"),
		})
		require.NoError(t, err)
		want, _, _ := stepsOf(t, ld, loader.Cursor{Epoch: 1})
		var next atomic.Int64
		all, err := ld.Deal(pipelines, func(_ context.Context, _, epoch int) (loader.Cursor, bool) {
			k := int(next.Add(1)) - 1
			if epoch != 1 || k >= len(want) {
				return loader.Cursor{}, false
			}
			return ld.Advance(loader.Cursor{Epoch: 1}, k)
		})
		require.NoError(t, err)
		got := make([][][]int64, pipelines)
		var wg sync.WaitGroup
		for i, one := range all {
			wg.Go(func() { got[i], _, _ = stepsOf(t, one, loader.Cursor{Epoch: 1}) })
		}
		wg.Wait()
		joined := slices.Concat(got...)
		slices.SortFunc(joined, func(a, b []int64) int { return find(want, a) - find(want, b) })
		require.Equal(t, want, joined)
	})
}

// Advance goes from step to step, over what is left out, to the end of the epoch.
func TestAdvance(t *testing.T) {
	ld, err := loader.New(inOrderOf(20), 3, loader.Options{Exclude: []loader.Exclusion{
		{Steps: []loader.Span{{From: loader.Cursor{Position: 6}, To: loader.Cursor{Position: 12}}}},
	}})
	require.NoError(t, err)
	at, ok := loader.Cursor{}, true
	for k, position := range []int64{0, 3, 12, 15, 18, 20} {
		to, ok := ld.Advance(loader.Cursor{}, k)
		require.True(t, ok)
		require.Equal(t, loader.Cursor{Position: position}, to, "%d steps", k)
		require.Equal(t, to, at)
		at, ok = ld.Advance(at, 1)
		require.Equal(t, position < 20, ok)
	}
	for _, steps := range []int{-1, 6} {
		_, ok = ld.Advance(loader.Cursor{}, steps)
		require.False(t, ok)
	}
	_, ok = ld.Advance(loader.Cursor{Position: 21}, 0)
	require.False(t, ok)
}

func find(steps [][]int64, rows []int64) int {
	return slices.IndexFunc(steps, func(s []int64) bool { return slices.Equal(s, rows) })
}

func TestDealRefuses(t *testing.T) {
	ld, err := loader.New(inOrderOf(6), 2, loader.Options{})
	require.NoError(t, err)
	_, err = ld.Deal(0, nil)
	require.ErrorContains(t, err, "n is 0")
	require.ErrorContains(t, err, "next is nil")
	for _, wrong := range []loader.Cursor{{Position: 6}, {Position: 7}, {Position: -1}, {Epoch: 1}} {
		all, err := ld.Deal(1, func(context.Context, int, int) (loader.Cursor, bool) { return wrong, true })
		require.NoError(t, err)
		memory, err := loader.NewHeap(ld.Layout().Size(), 1)
		require.NoError(t, err)
		run := all[0].Start(t.Context(), loader.Cursor{}, memory)
		_, err = run.Next(t.Context())
		var state *loader.StateError
		require.ErrorAs(t, err, &state)
		require.Equal(t, wrong, state.Got)
		require.NoError(t, run.Close())
	}
	stream, err := loader.NewIterable(loader.FromSeqFunc([]loader.Field{{Name: "x", DType: dtype.Int64}}, each(upTo(4)),
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) }), 2, loader.Options{})
	require.NoError(t, err)
	_, err = stream.Deal(2, func(context.Context, int, int) (loader.Cursor, bool) { return loader.Cursor{}, false })
	require.ErrorContains(t, err, "random access")
}

// A dealer that keeps a step for another pipeline is left when the Run is closed.
func TestADealerMayWait(t *testing.T) {
	ld, err := loader.New(inOrderOf(6), 2, loader.Options{})
	require.NoError(t, err)
	waits := make(chan struct{})
	all, err := ld.Deal(1, func(ctx context.Context, _, _ int) (loader.Cursor, bool) {
		close(waits)
		<-ctx.Done()
		return loader.Cursor{}, true
	})
	require.NoError(t, err)
	memory, err := loader.NewHeap(ld.Layout().Size(), 1)
	require.NoError(t, err)
	run := all[0].Start(t.Context(), loader.Cursor{}, memory)
	<-waits
	require.NoError(t, run.Close())
	_, err = run.Next(t.Context())
	require.True(t, errors.Is(err, loader.ErrClosed))
	require.Equal(t, 1, memory.Free())
}
