package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

var pass = loader.Pass{Epoch: 1, Seed: 7}

func TestMap(t *testing.T) {
	var open atomic.Int64
	s := stream.Map(count(&open, 0, 10, 3), func(_ context.Context, n int) (string, error) {
		switch {
		case n%4 == 3:
			return "", fmt.Errorf("%w: not this one", loader.Skip)
		case n == 5:
			return "", errBad
		case n == 6:
			panic(errBad)
		}
		return fmt.Sprint(n), nil
	})
	require.Equal(t, []string{"0", "9"}, texts(items(read(t, s, pass, 0))))
	requireMarks(t, s, pass)

	failures := slices.Concat(read(t, s, pass, 0), read(t, s, pass, 2))
	failures = slices.DeleteFunc(failures, func(e event[string]) bool { return e.err == nil })
	require.Len(t, failures, 2)
	for i, record := range []int64{6, 5} {
		require.ErrorIs(t, failures[i].err, errBad)
		var located loader.Located
		require.ErrorAs(t, failures[i].err, &located)
		require.Equal(t, loader.Origin{File: "numbers", Record: record}, located.Origin())
	}
	var panicked *loader.PanicError
	require.ErrorAs(t, failures[0].err, &panicked)
	require.Contains(t, string(panicked.Stack), "TestMap")
	require.Zero(t, open.Load())
}

func texts(items []stream.Item[string]) (all []string) {
	for _, i := range items {
		all = append(all, i.Value)
	}
	return all
}

// The scratch memory of a reader is its own, and the same for each value.
func TestMapScratch(t *testing.T) {
	s := stream.MapScratch(stream.FromSlice([]int{1, 2, 3, 4, 5}, 2), func() *[]int { return new([]int) },
		func(_ context.Context, seen *[]int, n int) (int, error) {
			*seen = append(*seen, n)
			return len(*seen), nil
		})
	require.Equal(t, []int{1, 1, 2, 2, 3}, all(t, s, pass))
	require.Equal(t, []int{1, 1, 2, 2, 3}, all(t, s, pass))

	broken := stream.MapScratch(stream.FromSlice([]int{1}, 1), func() int { panic(errBad) },
		func(context.Context, int, int) (int, error) { return 0, nil })
	_, err := broken.Open(ctx, pass, 0, nil)
	require.ErrorIs(t, err, errBad)
}

func TestMapRand(t *testing.T) {
	draw := func(_ context.Context, r *rand.Rand, n int) (uint64, error) {
		if n%5 == 4 {
			return 0, loader.Skip
		}
		return r.Uint64(), nil
	}
	numbers := stream.FromSlice(make([]int, 20), 2)
	s := stream.MapRand(numbers, draw)
	requireMarks(t, s, pass)
	seen := map[uint64]bool{}
	for _, p := range []loader.Pass{pass, {Epoch: 2, Seed: 7}, {Epoch: 1, Seed: 8}} {
		got := all(t, s, p)
		require.Equal(t, got, all(t, s, p))
		for _, v := range got {
			require.False(t, seen[v], "each value has numbers of its own")
			seen[v] = true
		}
	}
	twice := stream.MapRand(stream.MapRand(numbers, func(_ context.Context, r *rand.Rand, _ int) (uint64, error) {
		return r.Uint64(), nil
	}), func(_ context.Context, r *rand.Rand, first uint64) (bool, error) { return r.Uint64() == first, nil })
	require.NotContains(t, all(t, twice, pass), true, "each operator draws its own")
}

func TestFilter(t *testing.T) {
	var open atomic.Int64
	odd := stream.Filter(count(&open, 0, 20, 3), func(n int) bool {
		if n == 7 {
			panic(errBad)
		}
		return n%2 == 1
	})
	require.Equal(t, []int{3, 9, 15}, values(t, odd, pass, 0))
	requireMarks(t, odd, pass)
	events := read(t, odd, pass, 1)
	require.ErrorIs(t, events[1].err, errBad)
	require.Equal(t, 13, events[2].item.Value)
	none := stream.Filter(odd, func(int) bool { return false })
	require.Empty(t, values(t, none, pass, 0))
	require.Zero(t, open.Load())
}

func TestTakeAndSkipShareOut(t *testing.T) {
	var open atomic.Int64
	for _, shards := range []int{1, 2, 3} {
		for n := range 13 {
			s := count(&open, 0, n, shards)
			for _, k := range []int64{0, 1, 2, 3, 5, 11, 12, 13, math.MaxInt64} {
				first, rest := stream.Take(s, k), stream.Skip(s, k)
				cut := min(k, int64(n))
				require.Equal(t, nonNil(all(t, s, pass))[:cut], nonNil(all(t, first, pass)))
				got := slices.Sorted(slices.Values(all(t, rest, pass)))
				require.Equal(t, nonNil(all(t, s, pass))[cut:], nonNil(got))
				requireMarks(t, first, pass)
				requireMarks(t, rest, pass)
			}
		}
	}
	require.Zero(t, open.Load())
}

func TestConcatAndRepeat(t *testing.T) {
	var open atomic.Int64
	a, none, b := count(&open, 0, 5, 2), count(&open, 0, 0, 2), count(&open, 100, 3, 2)
	s := stream.Concat(a, none, b, none)
	require.Equal(t, []int{0, 2, 4, 100, 102}, values(t, s, pass, 0))
	require.Equal(t, []int{1, 3, 101}, values(t, s, pass, 1))
	requireMarks(t, s, pass)
	thrice := stream.Repeat(s, 3)
	require.Equal(t, []int{1, 3, 101, 1, 3, 101, 1, 3, 101}, values(t, thrice, pass, 1))
	requireMarks(t, thrice, pass)
	require.Empty(t, all(t, stream.Repeat(none, math.MaxInt), pass), "what gives nothing ends")

	var passes []loader.Pass
	each := stream.Repeat(counted(&open, 1, func(p loader.Pass, _ int) []any {
		passes = append(passes, p)
		return []any{len(passes)}
	}), 3)
	require.Equal(t, []int{1, 2, 3}, all(t, each, pass))
	require.Equal(t, pass, passes[0], "the first is the pass itself")
	require.NotEqual(t, passes[1].Seed, passes[2].Seed)
	require.NotEqual(t, pass.Seed, passes[1].Seed)
	require.Zero(t, open.Load())
}

// The part that follows can't be opened: what was before it is closed, and the error stays.
func TestConcatFailsToOpen(t *testing.T) {
	var open atomic.Int64
	broken := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) {
		return nil, errBad
	})
	s := stream.Concat(count(&open, 0, 2, 1), broken, count(&open, 5, 2, 1))
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	for range 2 {
		_, ok, err := next(ctx, r)
		require.True(t, ok && err == nil)
	}
	for range 3 {
		_, ok, err := next(ctx, r)
		require.False(t, ok)
		require.ErrorIs(t, err, errBad)
	}
	require.NoError(t, r.Close())
	require.Zero(t, open.Load())
	_, err = stream.Concat(broken, s).Open(ctx, pass, 0, nil)
	require.ErrorIs(t, err, errBad)
}

func TestFromSeqs(t *testing.T) {
	s := stream.FromSeqs(2, func(_ context.Context, p loader.Pass, shard int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			_ = yield(shard, nil) && yield(0, errBad) && yield(p.Epoch, nil)
		}
	})
	events := read(t, s, pass, 1)
	require.Len(t, events, 3)
	require.ErrorIs(t, events[1].err, errBad)
	require.Equal(t, pass.Epoch, events[2].item.Value)

	for name, over := range map[string]stream.Stream[int]{
		"itself": s, "Filter": stream.Filter(s, func(int) bool { return true }), "Take": stream.Take(s, 5),
		"Shuffle": stream.Shuffle(s, 2), "Concat": stream.Concat(s, s), "Repeat": stream.Repeat(s, 2),
	} {
		r, err := over.Open(ctx, pass, 0, nil)
		require.NoError(t, err, name)
		_, _, err = next(ctx, r)
		_, noMark := r.AppendMark(nil)
		require.True(t, errors.Is(err, errBad) || err == nil, name)
		require.ErrorIs(t, noMark, loader.ErrNoMark, name)
		require.NoError(t, r.Close())
	}
	_, err := s.Open(ctx, pass, 0, []byte("1"))
	require.ErrorIs(t, err, loader.ErrNoMark)
}

// What could not be opened once fails for ever: nothing is passed over silently.
func TestFailuresToOpenStay(t *testing.T) {
	var open atomic.Int64
	opens := 0
	once := stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
		if opens++; opens == 1 {
			return nil, errBad
		}
		return count(&open, 0, 5, 1).Open(ctx, pass, shard, mark)
	})
	good := count(&open, 0, 5, 1)
	for name, s := range map[string]stream.Stream[int]{
		"Concat": stream.Concat(good, once),
		"Mix":    stream.Mix(stream.Once, stream.Source[int]{Stream: good, Weight: 1}, stream.Source[int]{Stream: once, Weight: 1}),
	} {
		opens = 0
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		failed := 0
		for range 12 {
			if _, ok, err := next(ctx, r); err != nil {
				failed++
			} else {
				require.Zero(t, failed, name)
				require.True(t, ok, name)
			}
		}
		require.Greater(t, failed, 5, name)
		require.NoError(t, r.Close())
	}
	require.Zero(t, open.Load())
}

// To iter.Pull an iterator that has panicked has ended: its data would be cut off silently.
func TestFromSeqsPanics(t *testing.T) {
	s := stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] {
		return func(func(int, error) bool) { panic(errBad) }
	})
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	require.PanicsWithError(t, errBad.Error(), func() { _, _, _ = next(ctx, r) })
	for range 2 {
		_, ok, err := next(ctx, r)
		require.False(t, ok)
		require.ErrorContains(t, err, "panicked")
	}
	require.NoError(t, r.Close())
}

// All mistakes of a chain are told at once, each by name.
func TestMistakesOfAChain(t *testing.T) {
	var open atomic.Int64
	s := stream.Take(stream.Shuffle(count(&open, 0, 3, 2), 0), -1)
	s = stream.Concat(s, count(&open, 0, 3, 3), stream.Stream[int]{})
	s = stream.Repeat(stream.Filter(s, nil), 0)
	end := stream.Encode(stream.Map[int, int](s, nil), nil, nil)
	err := end.(interface{ Err() error }).Err()
	for _, want := range []string{
		"stream: Shuffle: size is 0, want 1 or more",
		"stream: Take: n is -1, want 0 or more",
		"stream: Concat: the number of shards of stream 1 is 3, want 2, as stream 0 has",
		"stream: Stream is the zero value",
		"stream: Filter: keep is <nil>, want a function",
		"stream: Repeat: times is 0, want 1 or more",
		"stream: Map: f is <nil>, want a function",
		"stream: Encode: encode is <nil>, want a function",
	} {
		require.ErrorContains(t, err, want)
	}
	var option *loader.OptionError
	require.ErrorAs(t, err, &option)
	_, opened := end.Open(ctx, pass, 0, nil)
	require.Equal(t, err.Error(), opened.Error())
	require.Equal(t, 2, end.Shards())

	none := stream.New[int](0, nil)
	require.ErrorContains(t, none.Err(), "stream: New: shards is 0")
	require.ErrorContains(t, none.Err(), "stream: New: open is <nil>")
	require.ErrorContains(t, stream.FromSlice([]int{1}, 0).Err(), "stream: FromSlice: shards is 0")
	require.ErrorContains(t, stream.FromSeqs[int](0, nil).Err(), "stream: FromSeqs: shards is 0")
}

// What a user's reader does wrong is told.
func TestReadersThatBreakTheRules(t *testing.T) {
	nothing := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) { return nil, nil })
	_, err := nothing.Open(ctx, pass, 0, nil)
	require.ErrorContains(t, err, "neither")
	for _, shard := range []int{-1, 1, math.MaxInt} {
		_, err = nothing.Open(ctx, pass, shard, nil)
		require.ErrorContains(t, err, fmt.Sprint(shard))
	}
	for _, mark := range []string{"", "{", "null", " null ", "1 2"} {
		s := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) {
			return badMark(mark), nil
		})
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		out, err := r.AppendMark([]byte("before"))
		require.ErrorContains(t, err, "JSON", mark)
		require.Equal(t, "before", string(out))
	}
}

type badMark string

func (badMark) Next(context.Context, *stream.Item[int]) (bool, error) {
	return false, nil
}
func (m badMark) AppendMark(dst []byte) ([]byte, error) { return append(dst, m...), nil }
func (badMark) Close() error                            { return nil }

// The fingerprint changes with every operator and every number of the chain.
func TestFingerprints(t *testing.T) {
	s := stream.Fingerprinted(stream.FromSlice([]int{1, 2, 3}, 1), 99)
	identity := nil2(func(n int) int { return n })
	weighted := func(a, b float64) stream.Stream[int] {
		return stream.Mix(stream.Once, stream.Source[int]{Stream: s, Weight: a}, stream.Source[int]{Stream: s, Weight: b})
	}
	all := []stream.Stream[int]{
		s, stream.Fingerprinted(s, 100), stream.Map(s, identity), stream.Filter(s, func(int) bool { return true }),
		stream.Take(s, 1), stream.Take(s, 2), stream.Skip(s, 1), stream.Skip(s, 2), stream.Repeat(s, 1), stream.Repeat(s, 2),
		stream.Shuffle(s, 1), stream.Shuffle(s, 2), stream.ByLength(s, 1, 2, one), stream.ByLength(s, 2, 1, one), stream.Cache(s, 1, one),
		stream.Concat(s), stream.Concat(s, s), weighted(1, 2), weighted(2, 1),
		stream.Take(stream.Skip(s, 1), 1), stream.Skip(stream.Take(s, 1), 1),
	}
	seen := map[uint64]int{}
	for i, s := range all {
		require.NotContains(t, seen, s.Fingerprint(), "%d", i)
		seen[s.Fingerprint()] = i
	}
	require.Equal(t, stream.Map(s, identity).Fingerprint(), stream.ParallelMap(s, 2, identity).Fingerprint(), "these give the same")
	require.Equal(t, s.Fingerprint(), stream.Retry(s, stream.RetryOptions{}).Fingerprint())
	require.Zero(t, stream.Take(stream.Fingerprinted(s, 0), 5).Fingerprint(), "nothing is known of the contents")

	lines := func(o stream.LinesOptions, f ...source.Source) uint64 { return stream.Lines(f, o).Fingerprint() }
	two := files("a", "b")
	different := []uint64{
		lines(stream.LinesOptions{}, two...), lines(stream.LinesOptions{}, two[0]), lines(stream.LinesOptions{}, two[1], two[0]),
		lines(stream.LinesOptions{Parts: 2}, two...), lines(stream.LinesOptions{Shards: 1}, two...), lines(stream.LinesOptions{Shuffle: true}, two...),
	}
	slices.Sort(different)
	require.Len(t, slices.Compact(different), 6)
}

func TestItems(t *testing.T) {
	var open atomic.Int64
	s := counted(&open, 1, func(loader.Pass, int) []any { return []any{1, errBad, loader.Flush, 2, 3} })
	var got []any
	for item, err := range s.Items(ctx, pass, 0) {
		if err != nil {
			got = append(got, err)
			continue
		}
		if item.Value == 3 {
			break
		}
		got = append(got, item.Value)
	}
	require.Equal(t, []any{1, errBad, 2}, got)
	for _, err := range s.Items(ctx, pass, 5) {
		require.Error(t, err)
	}
	require.Zero(t, open.Load())
}
