package stream_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// Many sources of which few are open give what they give when all are: also from each
// place on, and in other passes of a source.
func TestMixFew(t *testing.T) {
	var open atomic.Int64
	lengths := make([]int, 200)
	for i := range lengths {
		lengths[i] = 1 + i%3
	}
	weights := squares(len(lengths))
	for i := range weights {
		weights[i] += 0.001
	}
	for _, rule := range []stream.Rule{stream.UntilFirstEnds, stream.UntilAllEnded, stream.Once} {
		sources := sourcesOf(&open, 2, lengths, weights...)
		for i := range sources {
			sources[i].Stream = stream.Shuffle(sources[i].Stream, 2)
		}
		for _, most := range []int{1, 7, 200} {
			few := stream.Take(stream.MixFew(rule, most, sources...), 500)
			want := values(t, stream.Take(stream.Mix(rule, sources...), 500), pass, 0)
			require.Zero(t, open.Load())
			r, err := few.Open(ctx, pass, 0, nil)
			require.NoError(t, err)
			var marks [][]byte
			got := items(drain(t, r, func(n int) {
				require.LessOrEqual(t, open.Load(), int64(most))
				if n%200 == 1 {
					marks = append(marks, markOf(t, r))
				}
			}))
			require.NoError(t, r.Close())
			require.Equal(t, want, valuesOf(got), "%v, %d open", rule, most)
			for i, mark := range marks {
				r, err := few.Open(ctx, pass, 0, mark)
				require.NoError(t, err)
				require.Zero(t, open.Load(), "a source is opened when it has its turn")
				require.JSONEq(t, string(mark), string(markOf(t, r)))
				got := items(drain(t, r, func(int) { require.LessOrEqual(t, open.Load(), int64(most)) }))
				require.NoError(t, r.Close())
				require.Equal(t, want[200*i+1:], nonNil(valuesOf(got)))
			}
			require.Zero(t, open.Load())
		}
	}
	require.ErrorContains(t, stream.MixFew(stream.Once, 0, sourcesOf(&open, 1, []int{1}, 1)...).Err(), "stream: MixFew: open is 0, want 1 or more")
	require.ErrorContains(t, stream.MixFew(stream.Once, 1, sourcesOf(&open, 1, []int{1}, -1)...).Err(), "stream: MixFew: weights[0].Weights[0] is -1")
}

func valuesOf[T any](items []stream.Item[T]) (all []T) {
	for _, item := range items {
		all = append(all, item.Value)
	}
	return all
}

// A source without marks can't be closed and opened again: it stays open, and others rest.
func TestMixFewOfSourcesWithoutMarks(t *testing.T) {
	var open atomic.Int64
	opened := 0
	unmarked := stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] {
		opened++
		return func(yield func(int, error) bool) {
			for i := 0; i < 20 && yield(-i, nil); i++ {
			}
		}
	})
	sources := append(sourcesOf(&open, 1, []int{20, 20}, 1, 1), stream.Source[int]{Stream: unmarked, Weight: 1})
	want := values(t, stream.Mix(stream.Once, sources...), pass, 0)
	opened = 0
	require.Equal(t, want, values(t, stream.MixFew(stream.Once, 1, sources...), pass, 0))
	require.Equal(t, 1, opened)
	require.Zero(t, open.Load())
}

// A thousand files, one source each, under one pool of workers and one of files: no more files
// are open than the pool allows, also where a run goes on.
func TestMixOfAThousandFiles(t *testing.T) {
	const most = 16
	var texts []string
	for i := range 1000 {
		texts = append(texts, strings.Repeat(fmt.Sprintf("%d\n", i), 4))
	}
	pool := source.NewPool(most)
	var sources []stream.Source[[]byte]
	for _, file := range files(texts...) {
		lines := stream.Lines([]source.Source{pool.Source(file)}, stream.LinesOptions{Parts: 2, Read: source.Options{ReadBytes: 64}})
		sources = append(sources, stream.Source[[]byte]{Stream: lines, Weight: 1})
	}
	numbers := stream.ParallelMap(stream.JSON[int64](stream.MixFew(stream.Once, 32, sources...)), 4, func(_ context.Context, n int64) (int64, error) {
		if open := pool.Open(); open > most {
			return 0, fmt.Errorf("%d files are open", open)
		}
		return n, nil
	})
	o := loader.Options{Epochs: 1}
	w := newWorld(t, encodeNumber(numbers), 1, o)
	got := slices.Concat(w.steps(t, 100)...)
	state := w.state(t)
	w.close(t)
	w = newWorld(t, encodeNumber(numbers), 1, o)
	w.restore(t, state)
	got = append(got, slices.Concat(w.steps(t, 400)...)...)
	w.close(t)
	require.LessOrEqual(t, pool.Open(), most)
	slices.Sort(got)
	var want []int64
	for i := range int64(1000) {
		want = append(want, i, i, i, i)
	}
	require.Equal(t, want, got)
}
