package stream_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// everyOperator has one of each operator, over a stream of numbers.
func everyOperator(t *testing.T) map[string]func(s stream.Stream[int]) stream.Stream[int] {
	type numbers = stream.Stream[int]
	same := nil2(func(n int) int { return n })
	source := func(s numbers) stream.Source[int] { return stream.Source[int]{Stream: s, Weight: 1} }
	return map[string]func(s numbers) numbers{
		"Map": func(s numbers) numbers { return stream.Map(s, same) },
		"MapRand": func(s numbers) numbers {
			return stream.MapRand(s, func(_ context.Context, _ *rand.Rand, n int) (int, error) { return n, nil })
		},
		"MapScratch": func(s numbers) numbers {
			return stream.MapScratch(s, func() int { return 0 }, func(_ context.Context, _, n int) (int, error) { return n, nil })
		},
		"ParallelMap": func(s numbers) numbers { return stream.ParallelMap(s, 2, same) },
		"Filter":      func(s numbers) numbers { return stream.Filter(s, func(int) bool { return true }) },
		"Take":        func(s numbers) numbers { return stream.Take(s, 1000) },
		"Skip":        func(s numbers) numbers { return stream.Skip(s, 1) },
		"Concat":      func(s numbers) numbers { return stream.Concat(s, s) },
		"Repeat":      func(s numbers) numbers { return stream.Repeat(s, 2) },
		"Fewer":       func(s numbers) numbers { return stream.Fewer(s, 1) },
		"Zip": func(s numbers) numbers {
			return stream.Zip(s, s, func(_ context.Context, a, _ int) (int, error) { return a, nil })
		},
		"Mix":      func(s numbers) numbers { return stream.Mix(stream.Once, source(s), source(s)) },
		"MixFew":   func(s numbers) numbers { return stream.MixFew(stream.Once, 1, source(s), source(s)) },
		"Shuffle":  func(s numbers) numbers { return stream.Shuffle(s, 3) },
		"ByLength": func(s numbers) numbers { return stream.ByLength(s, 2, 2, lengthOf) },
		"Pack": func(s numbers) numbers {
			docs := stream.Map(s, nil2(func(n int) []int { return []int{n, n} }))
			return stream.Map(stream.Pack(docs, 3, stream.PackOptions[int]{}), nil2(func(w stream.Packed[int]) int { return len(w.Tokens) }))
		},
		"Retry":     func(s numbers) numbers { return stream.Retry(s, stream.RetryOptions{}) },
		"Cache":     func(s numbers) numbers { return stream.Cache(s, 1<<20, one) },
		"CacheFile": func(s numbers) numbers { return cacheFile(s, t.TempDir()).Stream() },
	}
}

// faultyReader is a shard of numbers that is as bad as it is told to be.
type faultyReader struct {
	n, end     int
	mark, last error
}

func (r *faultyReader) Next(_ context.Context, item *stream.Item[int]) (bool, error) {
	if r.n == r.end {
		return false, nil
	}
	*item = stream.Item[int]{Value: r.n}
	r.n++
	return true, nil
}

func (r *faultyReader) AppendMark(dst []byte) ([]byte, error) {
	if r.mark != nil {
		return append(dst, "rubbish"...), r.mark
	}
	return strconv.AppendInt(dst, int64(r.n), 10), nil
}

func (r *faultyReader) Close() error { return r.last }

// What a source's Close returns comes out of the Close of every chain, at the end, in the
// middle and before the first value.
func TestCloseOfChains(t *testing.T) {
	for name, chain := range everyOperator(t) {
		for _, read := range []int{1, 5, 100} {
			last := errors.New("close")
			s := chain(stream.New(1, func(_ context.Context, _ loader.Pass, _ int, mark []byte) (stream.Reader[int], error) {
				r := &faultyReader{end: 20, last: last}
				if mark != nil {
					r.n, _ = strconv.Atoi(string(mark))
				}
				return r, nil
			}))
			r, err := s.Open(ctx, pass, 0, nil)
			require.NoError(t, err, name)
			for range read {
				_, _, err := next(ctx, r)
				require.NoError(t, err, name)
			}
			require.ErrorIs(t, r.Close(), last, "%s behind %d", name, read)
		}
	}
}

// Where a source has no mark a chain has none, or one of a place before; where it fails to make
// one the chain says so. What was in dst stays.
func TestMarksOfChains(t *testing.T) {
	for name, chain := range everyOperator(t) {
		for _, cause := range []error{loader.ErrNoMark, errBad} {
			s := chain(stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) {
				return &faultyReader{end: 20, mark: cause}, nil
			}))
			r, err := s.Open(ctx, pass, 0, nil)
			require.NoError(t, err, name)
			refused := 0
			for range 8 {
				_, ok, err := next(ctx, r)
				require.True(t, ok && err == nil, name)
				out, err := r.AppendMark([]byte("before"))
				require.Equal(t, "before", string(out[:6]))
				if err != nil {
					require.True(t, errors.Is(err, cause) || errors.Is(err, loader.ErrNoMark), "%s: %v", name, err)
					refused++
				}
			}
			require.NotZero(t, refused, "%s: %v", name, cause)
			require.NoError(t, r.Close())
		}
	}
}

// A mark that is none is a *MarkError, at the latest when its part has its turn; an empty one
// and null are the beginning.
func TestChainsRefuseWhatIsNoMark(t *testing.T) {
	for name, chain := range everyOperator(t) {
		var open atomic.Int64
		s := chain(count(&open, 0, 20, 1))
		for _, text := range []string{"{", "[", `"x"`, "{}x", "[1]", "true"} {
			r, err := s.Open(ctx, pass, 0, []byte(text))
			for n := 0; err == nil && n < 3; n++ {
				_, _, err = next(ctx, r)
			}
			if r != nil {
				require.NoError(t, r.Close())
			}
			require.Error(t, err, "%s of %s", name, text)
			require.Zero(t, open.Load(), "%s of %s", name, text)
		}
		want := values(t, s, pass, 0)
		for _, text := range []string{"", "null"} {
			r, err := s.Open(ctx, pass, 0, []byte(text))
			require.NoError(t, err, name)
			require.Equal(t, want, valuesOf(items(drain(t, r, nil))), name)
			require.NoError(t, r.Close())
		}
		for _, shard := range []int{-1, 1} {
			_, err := s.Open(ctx, pass, shard, nil)
			require.ErrorContains(t, err, fmt.Sprintf("shard %d of 1", shard))
		}
		require.Zero(t, open.Load())
	}
}

// The bounds of arguments, on both sides.
func TestBoundsOfArguments(t *testing.T) {
	s := stream.FromSlice([]int{1, 2, 3}, 3)
	docs := stream.FromSlice([][]int{{1}}, 1)
	texts := files("a\n", "b\n", "c\n")
	lines := func(parts, shards int) stream.Stream[[]byte] {
		return stream.Lines(texts, stream.LinesOptions{Parts: parts, Shards: shards})
	}
	for _, c := range []struct {
		good, bad error
		want      string
	}{
		{stream.ByLength(s, 1, math.MaxInt32, lengthOf).Err(), stream.ByLength(s, 1, 0, lengthOf).Err(), "ByLength"},
		{stream.ByLength(s, math.MaxInt32, 1, lengthOf).Err(), stream.ByLength(s, 0, 1, lengthOf).Err(), "ByLength"},
		{stream.Pack(docs, 1<<28, stream.PackOptions[int]{}).Err(), stream.Pack(docs, 1<<28+1, stream.PackOptions[int]{}).Err(), "Pack: window is 268435457, want 1 to 268435456"},
		{stream.Pack(docs, 1, stream.PackOptions[int]{Open: 1 << 16}).Err(), stream.Pack(docs, 1, stream.PackOptions[int]{Open: 1<<16 + 1}).Err(), "Pack: Open is 65537"},
		{stream.Pack(docs, 1, stream.PackOptions[int]{}).Err(), stream.Pack(docs, 1, stream.PackOptions[int]{Open: -1}).Err(), "Pack: Open is -1"},
		{lines(0, 3).Err(), lines(0, 4).Err(), "Lines: Shards is 4, want 0 (one for each part of a file) to 3"},
		{lines(2, 6).Err(), lines(2, 7).Err(), "Shards is 7"},
		{lines(0, 0).Err(), lines(0, -1).Err(), "Shards is -1"},
		{lines(1<<20, 3).Err(), lines(1<<20+1, 3).Err(), "Lines: Parts is 1048577"},
		{stream.Fewer(s, 3).Err(), stream.Fewer(s, 4).Err(), "Fewer: shards is 4, want 1 to 3"},
		{nil, stream.Mix(stream.Rule(-1), stream.Source[int]{Stream: s, Weight: 1}).Err(), "Mix: rule is Rule(-1)"},
		{nil, stream.FromSeqs[int](1, nil).Err(), "FromSeqs: values is <nil>, want a function"},
	} {
		require.NoError(t, c.good, c.want)
		require.ErrorContains(t, c.bad, c.want)
		require.ErrorAs(t, c.bad, new(*loader.OptionError))
	}
	if math.MaxInt > math.MaxInt32 {
		large := math.MaxInt32
		large++
		require.ErrorContains(t, stream.ByLength(s, large, 1, lengthOf).Err(), "ByLength: run is 2147483648")
		require.ErrorContains(t, stream.ByLength(s, 1, large, lengthOf).Err(), "ByLength: runs is 2147483648")
	}
	none := stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] { return nil })
	_, err := none.Open(ctx, pass, 0, nil)
	require.ErrorContains(t, err, "values returned nil, want an iterator")
}

// An iterator's value has no origin, whatever the item held before; and one whose error comes
// with a value has given the error.
func TestFromSeqsOfValuesWithErrors(t *testing.T) {
	s := stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, errBad) && yield(3, nil) }
	})
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	item := stream.Item[int]{Origin: loader.Origin{File: "old"}}
	for i, want := range []error{nil, errBad, nil} {
		ok, err := r.Next(ctx, &item)
		require.Equal(t, want == nil, ok, i)
		require.Equal(t, want, err)
		require.Zero(t, item.Origin)
	}
	require.NoError(t, r.Close())
}

// Streams of slices of other lengths are other data; so are other arguments and other streams
// together. What is equal has equal fingerprints.
func TestFingerprintsOfChains(t *testing.T) {
	seen := map[uint64]string{}
	add := func(name string, fingerprint uint64) {
		require.NotZero(t, fingerprint, name)
		require.Empty(t, seen[fingerprint], "%s has the fingerprint of another", name)
		seen[fingerprint] = name
	}
	numbers := func(n int) stream.Stream[int] { return stream.FromSlice(slices.Repeat([]int{1}, n), 1) }
	for n := 1; n < 4; n++ {
		add(fmt.Sprint(n, " values"), numbers(n).Fingerprint())
	}
	for name, chain := range everyOperator(t) {
		switch name {
		case "Cache", "CacheFile", "Retry", "MapScratch", "ParallelMap", "MixFew", "Fewer":
			continue // they change nothing, or are another form of one that is here
		}
		add(name, chain(numbers(5)).Fingerprint())
		require.Equal(t, chain(numbers(5)).Fingerprint(), chain(numbers(5)).Fingerprint(), name)
		add(name+" of others", chain(numbers(6)).Fingerprint())
	}
}
