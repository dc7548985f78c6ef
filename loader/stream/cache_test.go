package stream_test

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// counting is a stream of n values over the shards that counts how many are read, and how
// many readers are open.
func counting(reads, open *atomic.Int64, n, shards int) stream.Stream[int] {
	return stream.Map(count(open, 0, n, shards), func(_ context.Context, v int) (int, error) {
		reads.Add(1)
		return v, nil
	})
}

func one(int) int { return 1 }

// Each value is read once in three passes, whatever stands above, also if each pass is left
// in the middle.
func TestCacheReadsOnce(t *testing.T) {
	for _, shards := range []int{1, 2} {
		var reads, open atomic.Int64
		source := counting(&reads, &open, 10, shards)
		cached := stream.Cache(source, 1000, one)
		want := all(t, count(&open, 0, 10, shards), pass)
		for stop := range 11 {
			for shard := range shards {
				r, err := cached.Open(ctx, pass, shard, nil)
				require.NoError(t, err)
				for range stop {
					_, _, err := next(ctx, r)
					require.NoError(t, err)
				}
				require.NoError(t, r.Close())
			}
		}
		taken := all(t, stream.Take(cached, 8), pass)
		require.Equal(t, want[:8], taken)
		for epoch := range 3 {
			require.Equal(t, want, all(t, cached, loader.Pass{Epoch: epoch}))
		}
		mixed := stream.Mix(stream.UntilAllEnded, stream.Source[int]{Stream: cached, Weight: 5}, stream.Source[int]{Stream: count(&open, 100, 50, shards), Weight: 5})
		require.Subset(t, all(t, stream.Shuffle(mixed, 7), pass), want)
		require.EqualValues(t, 10, reads.Load())
		require.Zero(t, open.Load())
	}
}

// What does not fit is read each time; what does, once.
func TestCacheKeepsToItsLimit(t *testing.T) {
	const n = 300
	for limit, held := range map[int64]int64{0: 0, 9: 0, 10: 1, 1999: 199, 10 * n: n, 20 * n: n} {
		var reads, open atomic.Int64
		cached := stream.Cache(counting(&reads, &open, n, 1), limit, func(int) int { return 10 })
		for range 3 {
			require.Len(t, values(t, cached, pass, 0), n)
		}
		again := reads.Load() - n
		require.GreaterOrEqual(t, again, 2*(n-held), "limit %d", limit)
		require.Less(t, again, 2*(n-held+64), "limit %d", limit)
		if held == n {
			require.Zero(t, again)
		}
		require.Zero(t, open.Load())
	}
}

// A mark is good in a process that holds nothing, and in one that holds some or all.
func TestCacheMarks(t *testing.T) {
	var reads, open atomic.Int64
	const n = 200
	for _, held := range []int{0, 50, n} {
		fresh := func() stream.Stream[int] {
			cached := stream.Cache(stream.Shuffle(counting(&reads, &open, n, 1), 10), 1000, one)
			r, err := cached.Open(ctx, pass, 0, nil)
			require.NoError(t, err)
			for range held {
				_, _, _ = next(ctx, r)
			}
			require.NoError(t, r.Close())
			return cached
		}
		want := items(read(t, fresh(), pass, 0))
		r, err := fresh().Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		for k := range want {
			mark := markOf(t, r)
			again := fresh()
			before := reads.Load()
			g, err := again.Open(ctx, pass, 0, mark)
			require.NoError(t, err, "%s", mark)
			require.Less(t, reads.Load()-before, int64(180), "not from the beginning: %s", mark)
			require.Equal(t, want[k:], items(drain(t, g, nil)), "from %d", k)
			require.NoError(t, g.Close())
			_, _, err = next(ctx, r)
			require.NoError(t, err)
		}
		require.NoError(t, r.Close())
	}
	require.Zero(t, open.Load())
	cached := stream.Cache(count(&open, 0, 5, 1), 1000, one)
	for _, mark := range []string{"{", "1", `{"n":-1,"from":0,"at":null}`, `{"n":1,"from":2,"at":1}`, `{"n":1,"from":0}`, `{"n":9,"from":0,"at":null}`, `{"n":1,"from":0,"at":77}`} {
		_, err := cached.Open(ctx, pass, 0, []byte(mark))
		require.Error(t, err, mark)
	}
	require.Zero(t, open.Load())
}

// Failures come again where they were, without being read; temporary ones are tried again.
func TestCacheOfFailures(t *testing.T) {
	var open atomic.Int64
	times := 0
	cached := stream.Cache(stream.Map(count(&open, 0, 10, 1), func(_ context.Context, n int) (int, error) {
		switch times++; {
		case n == 3 || n == 9:
			return 0, errBad
		case n == 6 && times < 20:
			return 0, fmt.Errorf("at call %d: %w", times, busy{})
		}
		return n, nil
	}), 1000, one)
	first := read(t, cached, pass, 0)
	require.Len(t, items(first), 7)
	require.ErrorIs(t, first[6].err, busy{})
	second := read(t, cached, pass, 0)
	require.Len(t, items(second), 7)
	require.Equal(t, 20, times, "it was tried again")
	for len(items(read(t, cached, pass, 0))) < 8 {
	}
	times = 100
	third := read(t, cached, pass, 0)
	require.Len(t, items(third), 8)
	require.Equal(t, 100, times, "all is held")
	require.ErrorIs(t, third[3].err, errBad)
	require.ErrorIs(t, third[9].err, errBad)
	require.Zero(t, open.Load())
}

// Several readers of one shard give the same.
func TestCacheIsShared(t *testing.T) {
	var reads, open atomic.Int64
	cached := stream.Cache(counting(&reads, &open, 500, 1), 1000, one)
	want := values(t, count(&open, 0, 500, 1), pass, 0)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { require.Equal(t, want, values(t, cached, pass, 0)) })
	}
	group.Wait()
	require.Equal(t, want, values(t, cached, pass, 0))
	require.LessOrEqual(t, reads.Load(), int64(2000))
	require.Zero(t, open.Load())
}

func TestCacheWithoutMarks(t *testing.T) {
	s := stream.Cache(stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range 5 {
				if !yield(i, nil) {
					return
				}
			}
		}
	}), 1000, one)
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	_, _, _ = next(ctx, r)
	_, err = r.AppendMark(nil)
	require.ErrorIs(t, err, loader.ErrNoMark)
	require.NoError(t, r.Close())
	for range 2 {
		require.Equal(t, []int{0, 1, 2, 3, 4}, values(t, s, pass, 0))
	}
}

func TestCacheMistakes(t *testing.T) {
	var open atomic.Int64
	s := stream.Cache(count(&open, 0, 5, 1), -1, nil)
	require.ErrorContains(t, s.Err(), "stream: Cache: bytes is -1, want 0 or more")
	require.ErrorContains(t, s.Err(), "stream: Cache: size is <nil>, want a function")
	require.Error(t, stream.Cache(stream.Stream[int]{}, 1, one).Err())
	panics := stream.Cache(count(&open, 0, 5, 1), 100, func(int) int { panic(errBad) })
	require.Len(t, values(t, panics, pass, 0), 5)
	require.Zero(t, open.Load())
}

// The second epoch computes nothing.
func ExampleCache() {
	computed := 0
	squares := stream.Map(stream.FromSlice([]int{1, 2, 3}, 1), func(_ context.Context, n int) (int, error) {
		computed++
		return n * n, nil
	})
	cached := stream.Cache(squares, 1<<20, func(int) int { return 8 })
	show(stream.Repeat(stream.Shuffle(cached, 10), 2))
	fmt.Println(computed, "computed")
	// Output:
	// shard 0 [9 4 1 9 1 4]
	// 3 computed
}
