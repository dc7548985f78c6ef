package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// chainOfAll has most operators in it, on numbers in files of JSON. Some lines are none.
func chainOfAll(bad bool) stream.Stream[int64] {
	var contents []string
	for f := range 8 {
		var b strings.Builder
		for i := range 10 + 7*f {
			if bad && i%9 == 4 {
				b.WriteString("{\n")
			}
			fmt.Fprintf(&b, "%d\n", 1000*f+i)
		}
		contents = append(contents, b.String())
	}
	numbers := stream.JSON[int64](stream.Lines(files(contents...), stream.LinesOptions{Shards: 4, Shuffle: true}))
	odd := stream.Filter(numbers, func(n int64) bool { return n%2 == 1 })
	negative := stream.ParallelMap(odd, 2, nil2(func(n int64) int64 { return -n }))
	mixed := stream.Mix(stream.UntilAllEnded,
		stream.Source[int64]{Stream: stream.Shuffle(numbers, 9), Weight: 3},
		stream.Source[int64]{Stream: stream.Shuffle(negative, 5), Weight: 1})
	noisy := stream.MapRand(mixed, func(_ context.Context, r *rand.Rand, n int64) (int64, error) { return n*100 + r.Int64N(100), nil })
	return stream.ByLength(stream.Take(noisy, 500), 2, 4, func(n int64) int { return int(n % 17) })
}

func encodeNumber(s stream.Stream[int64]) loader.Stream {
	return stream.Encode(s, []loader.Field{{Name: "n", DType: dtype.Int64}}, func(_ context.Context, n int64, row *loader.Row) error {
		return loader.Write(row, "n", n)
	})
}

// world is the ranks of a training run, in one process.
type world []*prefetch.Prefetcher

func newWorld(t *testing.T, data loader.Stream, ranks int, o loader.Options) world {
	return newWorldOf(t, data, ranks, o, prefetch.Options{})
}

func newWorldOf(t *testing.T, data loader.Stream, ranks int, o loader.Options, of prefetch.Options) (w world) {
	const global = 8
	for rank := range ranks {
		if ranks > 1 {
			o.Shard = loader.Shard{Index: rank, Count: ranks}
		}
		ld, err := loader.NewStream(data, global/ranks, o)
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, of)
		require.NoError(t, err)
		w = append(w, pf)
	}
	return w
}

// steps makes some, and returns the global batches, each in the order of its numbers.
func (w world) steps(t *testing.T, n int) [][]int64 {
	batches := make([][]int64, n)
	for _, pf := range w {
		i := 0
		for batch, err := range pf.All(ctx) {
			require.NoError(t, err)
			values, err := prefetch.Column[int64](batch, "n")
			require.NoError(t, err)
			batches[i] = append(batches[i], values...)
			if i++; i == n {
				break
			}
		}
		require.Equal(t, n, i)
	}
	for _, b := range batches {
		slices.Sort(b)
	}
	return batches
}

// state is that of all ranks, by way of JSON.
func (w world) state(t *testing.T) (state loader.State) {
	var states []loader.State
	for _, pf := range w {
		states = append(states, pf.State())
	}
	merged, err := loader.MergeStates(states...)
	require.NoError(t, err)
	text, err := json.Marshal(merged)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	return state
}

// restore makes all ranks go on from a state.
func (w world) restore(t *testing.T, state loader.State) {
	for _, pf := range w {
		require.NoError(t, pf.Restore(state))
	}
}

func (w world) close(t *testing.T) {
	for _, pf := range w {
		require.NoError(t, pf.Close())
	}
}

// Stopped behind any step and gone on with by another number of ranks, twice, the global
// batches are those of the run that nobody stopped; also where lines are none and are left
// out.
func TestLoaderGoesOnInAnotherWorld(t *testing.T) {
	for _, bad := range []bool{false, true} {
		const steps, epochs = 30, 2
		o := loader.Options{Seed: 3, Steps: steps, Epochs: epochs, Last: loader.Drop}
		if bad {
			o.OnError = loader.SkipFailed
		}
		data := encodeNumber(chainOfAll(bad))
		whole := newWorld(t, data, 1, o)
		want := whole.steps(t, epochs*steps)
		whole.close(t)
		for _, first := range []int{1, 7, 29, 30, 41} {
			for _, worlds := range [][]int{{1, 2, 4}, {4, 1, 2}, {2, 4, 4}} {
				var got [][]int64
				var state loader.State
				for i, ranks := range worlds {
					w := newWorld(t, data, ranks, o)
					if i > 0 {
						w.restore(t, state)
					}
					n := []int{first, 11, epochs*steps - first - 11}[i]
					got = append(got, w.steps(t, n)...)
					state = w.state(t)
					w.close(t)
				}
				require.Equal(t, want, got, "bad %v, worlds %v, stopped behind %d and %d", bad, worlds, first, first+11)
			}
		}
	}
}

// Without Steps one rank reads each value once, and a failure names the file and the line.
func TestLoaderReadsAnEpoch(t *testing.T) {
	numbers := stream.JSON[int64](stream.Lines(files("1\n2\n", "3\n", "", "4\n5\n6\n7\n"), stream.LinesOptions{Shards: 2}))
	w := newWorld(t, encodeNumber(stream.Shuffle(numbers, 3)), 1, loader.Options{Epochs: 1})
	var got []int64
	for batch, err := range w[0].All(ctx) {
		require.NoError(t, err)
		values, err := prefetch.Column[int64](batch, "n")
		require.NoError(t, err)
		got = append(got, values...)
	}
	require.ElementsMatch(t, []int64{1, 2, 3, 4, 5, 6, 7}, got)
	w.close(t)

	broken := stream.JSON[int64](stream.Lines(files("1\n2\nthree\n"), stream.LinesOptions{}))
	w = newWorld(t, encodeNumber(broken), 1, loader.Options{Epochs: 1})
	var failure *loader.Error
	for _, err := range w[0].All(ctx) {
		if err != nil {
			require.ErrorAs(t, err, &failure)
		}
	}
	require.Equal(t, loader.Origin{File: "a", Offset: 4, Record: 2, Line: 3}, failure.Origin)
	require.EqualError(t, failure, "loader: epoch 0, batch 0, shard 0 (position 2), a, line 3 at offset 4: iterate: "+
		"invalid character 'h' in literal true (expecting 'r'), at byte 2, near `three`")
	require.NoError(t, w[0].Close())
}

// A Flush goes through the operators, and ends a batch early.
func TestLoaderDeliversAtAFlush(t *testing.T) {
	live := stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			_ = yield(1, nil) && yield(2, nil) && yield(0, loader.Flush) && yield(3, nil) && yield(0, loader.Flush) && yield(0, loader.Flush)
		}
	})
	doubled := stream.ParallelMap(stream.Filter(live, func(int64) bool { return true }), 2, nil2(func(n int64) int64 { return 2 * n }))
	w := newWorld(t, encodeNumber(doubled), 1, loader.Options{Epochs: 1})
	var got [][]int64
	for batch, err := range w[0].All(ctx) {
		require.NoError(t, err)
		values, err := prefetch.Column[int64](batch, "n")
		require.NoError(t, err)
		got = append(got, slices.Clone(values))
	}
	require.Equal(t, [][]int64{{2, 4}, {6}}, got)
	w.close(t)
}

// A stream's mistakes come out of NewStream, each an *OptionError.
func TestLoaderTellsMistakes(t *testing.T) {
	var open atomic.Int64
	s := stream.Map(stream.Shuffle(count(&open, 0, 3, 2), -1), nil2(func(n int) int64 { return int64(n) }))
	_, err := loader.NewStream(encodeNumber(s), 0, loader.Options{})
	require.ErrorContains(t, err, "stream: Shuffle: size is -1, want 1 or more")
	require.ErrorContains(t, err, "batchSize is 0")
}
