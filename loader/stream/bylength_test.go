package stream_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// lengthOf is a number's length, which is not in the order of the numbers.
func lengthOf(n int) int { return n * 7919 % 101 }

func TestByLength(t *testing.T) {
	var open atomic.Int64
	for _, c := range []struct{ n, shards, run, runs int }{
		{0, 1, 3, 2}, {1, 1, 3, 2}, {5, 1, 3, 2}, {6, 1, 3, 2}, {7, 1, 3, 2}, {60, 2, 3, 4}, {61, 3, 1, 5}, {50, 1, 10, 1}, {40, 1, 100, 100},
	} {
		s := stream.ByLength(count(&open, 0, c.n, c.shards), c.run, c.runs, lengthOf)
		requireMarks(t, s, pass)
		for shard := range c.shards {
			got := values(t, s, pass, shard)
			want := values(t, count(&open, 0, c.n, c.shards), pass, shard)
			require.ElementsMatch(t, want, got)
			for i := 0; i < len(want); i += c.run * c.runs {
				end := min(len(want), i+c.run*c.runs)
				require.ElementsMatch(t, want[i:end], got[i:end], "each window has its own values")
				sorted := slices.Clone(want[i:end])
				slices.SortStableFunc(sorted, func(a, b int) int { return lengthOf(a) - lengthOf(b) })
				runs := slices.Collect(slices.Chunk(sorted, c.run))
				for rest := got[i:end]; len(rest) > 0; {
					number := slices.IndexFunc(runs, func(run []int) bool { return run[0] == rest[0] })
					require.GreaterOrEqual(t, number, 0)
					require.Equal(t, runs[number], rest[:len(runs[number])], "a run is as sorted")
					rest = rest[len(runs[number]):]
				}
			}
		}
	}
	require.Zero(t, open.Load())
}

// In all shards the runs have one order, so that a batch over them has similar lengths; it is
// another one in each window and epoch.
func TestByLengthAgreesOverShards(t *testing.T) {
	var open atomic.Int64
	same := counted(&open, 2, func(loader.Pass, int) (all []any) {
		for i := range 128 {
			all = append(all, i%64)
		}
		return all
	})
	s := stream.ByLength(same, 4, 16, lengthOf)
	got := values(t, s, pass, 0)
	require.Equal(t, got, values(t, s, pass, 1))
	require.NotEqual(t, got[:64], got[64:])
	require.NotEqual(t, got, values(t, s, loader.Pass{Epoch: 2, Seed: 7}, 0))
	require.Zero(t, open.Load())
}

func TestByLengthOfFailures(t *testing.T) {
	var open atomic.Int64
	bad := counted(&open, 1, func(loader.Pass, int) (all []any) {
		for i := range 50 {
			if all = append(all, i); i%6 == 5 {
				all = append(all, errBad, loader.Flush)
			}
		}
		return all
	})
	s := stream.ByLength(bad, 3, 4, func(n int) int {
		if n == 20 {
			panic(errBad)
		}
		return lengthOf(n)
	})
	events := read(t, s, pass, 0)
	require.Len(t, items(events), 49)
	require.Len(t, events, 49+1+8+8)
	requireMarks(t, s, pass)
	require.Zero(t, open.Load())
}

func TestByLengthRefusesMarks(t *testing.T) {
	var open atomic.Int64
	s := stream.ByLength(count(&open, 0, 20, 1), 2, 3, lengthOf)
	for _, mark := range []string{
		"{", `{"given":0,"at":null,"from":-6,"read":0}`, `{"given":0,"at":null,"from":9223372036854775806,"read":0}`,
		`{"given":-1,"at":null,"from":0,"read":6}`, `{"given":7,"at":null,"from":0,"read":6}`,
		`{"given":0,"at":5,"from":5,"read":1}`, `{"given":0,"at":null,"from":0,"read":7}`, `{"given":0,"at":null,"from":0,"read":-1}`,
		`{"given":9223372036854775807,"at":null,"from":0,"read":6}`, `{"given":1,"at":18,"from":18,"read":3}`,
	} {
		_, err := s.Open(ctx, pass, 0, []byte(mark))
		var wrong *stream.MarkError
		require.ErrorAs(t, err, &wrong, mark)
		require.Zero(t, open.Load(), mark)
	}
	wrong := stream.ByLength(count(&open, 0, 20, 1), 0, math.MaxInt, nil)
	for _, want := range []string{"run is 0", "runs is 9223372036854775807", "length is <nil>"} {
		require.ErrorContains(t, wrong.Err(), want)
	}
}
