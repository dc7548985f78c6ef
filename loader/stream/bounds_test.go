package stream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// far has a reader of s go past n items, and returns its mark.
func far[T any](t *testing.T, s stream.Stream[T], n int) []byte {
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	for range n {
		_, ok, err := next(ctx, r)
		require.True(t, ok && err == nil)
	}
	mark := markOf(t, r)
	require.NoError(t, r.Close())
	return mark
}

// Going on far from the beginning reads again what is held back, and a few more: never all.
// Marks are small.
func TestLittleIsReadAgain(t *testing.T) {
	var reads atomic.Int64
	s := stream.Map(endless(1), func(_ context.Context, n int) (int, error) {
		reads.Add(1)
		return n, nil
	})
	docs := stream.Map(s, nil2(func(n int) []int { return make([]int, n%50) }))
	for name, c := range map[string]struct {
		s     stream.Stream[int]
		reads int64
		bytes int
	}{
		"Shuffle":     {stream.Shuffle(s, 100), 100 * 10, 60},
		"Shuffle³":    {stream.Shuffle(stream.Shuffle(stream.Shuffle(s, 10), 10), 10), 10 * 10 * 3, 160},
		"ByLength":    {stream.ByLength(s, 10, 10, lengthOf), 100, 60},
		"ParallelMap": {stream.ParallelMap(s, 2, nil2(func(n int) int { return n })), 64, 50},
		"Retry":       {stream.Retry(s, stream.RetryOptions{}), 0, 10},
		"Pack":        {stream.Map(stream.Pack(docs, 100, stream.PackOptions[int]{Open: 4}), nil2(func(stream.Packed[int]) int { return 0 })), 80, 300},
		"Cache":       {stream.Cache(s, 1000, one), 64, 40},
		"Mix":         {stream.Mix(stream.Once, stream.Source[int]{Stream: s, Weight: 1}, stream.Source[int]{Stream: stream.Shuffle(s, 10), Weight: 2}), 100, 200},
		"Repeat":      {stream.Repeat(stream.Concat(s, s), 2), 0, 60},
	} {
		mark := far(t, c.s, 20_003)
		require.LessOrEqual(t, len(mark), c.bytes, "%s: %s", name, mark)
		reads.Store(0)
		r, err := c.s.Open(ctx, pass, 0, mark)
		require.NoError(t, err)
		require.LessOrEqual(t, reads.Load(), c.reads, name)
		require.NoError(t, r.Close())
	}
}

// Memory for places and marks doesn't grow with the place, also where records fail.
func TestMarksStaySmallOverFailures(t *testing.T) {
	s := stream.Map(endless(1), func(_ context.Context, n int) (int, error) {
		if n%3 == 0 {
			return 0, fmt.Errorf("number %d", n)
		}
		return n, nil
	})
	shuffled := stream.Shuffle(s, 16)
	r, err := shuffled.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	longest := 0
	for range 20_000 {
		_, _, _ = next(ctx, r)
		mark, err := r.AppendMark(nil)
		require.NoError(t, err)
		longest = max(longest, len(mark))
	}
	require.NoError(t, r.Close())
	require.Less(t, longest, 1000)
}

// A reader that panics when it is read again, or opened as the second, leaves none open.
func TestPanicsInOpenLeaveNothingOpen(t *testing.T) {
	var open atomic.Int64
	panics, breaks := false, func() {
		panic(errBad)
	}
	below := count(&open, 0, 200, 1)
	s := stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
		r, err := below.Open(ctx, pass, shard, mark)
		b := &breaking{Reader: r, breaks: breaks, n: 2}
		if panics {
			b.n = 1
		}
		return b, err
	})
	opens := 0
	second := stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
		if opens++; opens > 1 {
			breaks()
		}
		return below.Open(ctx, pass, shard, mark)
	})
	identity := nil2(func(n int) int { return n })
	for name, s := range map[string]stream.Stream[int]{
		"Shuffle":     stream.Shuffle(s, 10),
		"ByLength":    stream.ByLength(s, 3, 4, lengthOf),
		"ParallelMap": stream.ParallelMap(s, 2, identity),
		"Cache":       stream.Cache(s, 0, one),
		"Pack":        stream.Map(stream.Pack(stream.Map(s, nil2(document)), 5, stream.PackOptions[int]{}), nil2(func(w stream.Packed[int]) int { return w.Tokens[0] })),
		"Zip":         stream.Zip(below, second, func(_ context.Context, a, _ int) (int, error) { return a, nil }),
		"Mix":         stream.Mix(stream.Once, stream.Source[int]{Stream: below, Weight: 1}, stream.Source[int]{Stream: second, Weight: 1}),
	} {
		panics, opens = false, 0
		mark := far(t, s, 30)
		panics = true
		require.PanicsWithError(t, errBad.Error(), func() { _, _ = s.Open(ctx, pass, 0, mark) }, name)
		require.Zero(t, open.Load(), name)
	}
}
