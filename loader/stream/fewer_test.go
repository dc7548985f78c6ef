package stream_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// Thousands of shards are joined to a few: all values are there, in order, from each place on,
// and one reader a shard is open at most.
func TestFewer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var open atomic.Int64
		shards := rapid.IntRange(1, 30).Draw(t, "shards")
		fewer := rapid.IntRange(1, shards).Draw(t, "fewer")
		s := counted(&open, shards, func(_ loader.Pass, shard int) (events []any) {
			for n := range shard % 4 {
				events = append(events, 10*shard+n)
			}
			return events
		})
		f := stream.Fewer(s, fewer)
		require.NoError(t, f.Err())
		require.Equal(t, fewer, f.Shards())
		var got []int
		for shard := range fewer {
			want := []int{}
			for i := shard; i < shards; i += fewer {
				want = append(want, values(t, s, pass, i)...)
			}
			r, err := f.Open(ctx, pass, shard, nil)
			require.NoError(t, err)
			drain(t, r, func(int) { require.LessOrEqual(t, open.Load(), int64(1)) })
			require.NoError(t, r.Close())
			require.Equal(t, want, nonNil(values(t, f, pass, shard)))
			got = append(got, want...)
		}
		requireMarks(t, f, pass)
		require.Zero(t, open.Load())
		slices.Sort(got)
		require.Equal(t, got, slices.Compact(slices.Clone(got)))
	})
	s := stream.FromSlice([]int{1, 2, 3}, 2)
	for _, shards := range []int{0, 3} {
		require.ErrorContains(t, stream.Fewer(s, shards).Err(), "want 1 to 2, the number of shards")
	}
}
