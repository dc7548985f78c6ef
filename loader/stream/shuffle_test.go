package stream_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

func TestShuffleGoesOnFromEachPlace(t *testing.T) {
	var open atomic.Int64
	for _, size := range []int{1, 2, 3, 10, 40, math.MaxInt} {
		for _, n := range []int{0, 1, 2, 3, 10, 41, 80} {
			s := stream.Shuffle(count(&open, 0, n, 2), size)
			got := all(t, s, pass)
			require.ElementsMatch(t, all(t, count(&open, 0, n, 2), pass), got)
			requireMarks(t, s, pass)
		}
	}
	require.Zero(t, open.Load())
}

// A permutation of a few values comes up as often as each other, whatever the place of the
// buffer: chi-squared over 24 orders of a whole shard.
func TestShuffleIsFair(t *testing.T) {
	s := stream.Shuffle(stream.FromSlice([]int{0, 1, 2, 3}, 1), 4)
	seen := map[string]int{}
	const passes = 24_000
	for seed := range uint64(passes) {
		seen[fmt.Sprint(values(t, s, loader.Pass{Seed: seed}, 0))]++
	}
	require.Len(t, seen, 24)
	var chi float64
	for _, n := range seen {
		chi += float64((n-1000)*(n-1000)) / 1000
	}
	require.Less(t, chi, 49.7, "23 degrees of freedom, 0.1%%")
}

// The order depends on seed, epoch, shard and operator.
func TestShufflesDiffer(t *testing.T) {
	numbers := stream.FromSlice(slices.Repeat([]int{0}, 200), 2)
	n := 0
	numbers = stream.Map(numbers, nil2(func(int) int { n++; return n }))
	once := stream.Shuffle(numbers, 50)
	order := func(s stream.Stream[int], p loader.Pass, shard int) []int {
		n = 0
		return values(t, s, p, shard)
	}
	want := order(once, pass, 0)
	require.Equal(t, want, order(once, pass, 0))
	for name, other := range map[string][]int{
		"shard": order(once, pass, 1),
		"epoch": order(once, loader.Pass{Epoch: 2, Seed: 7}, 0),
		"seed":  order(once, loader.Pass{Epoch: 1, Seed: 8}, 0),
	} {
		require.NotEqual(t, want, other, name)
	}
	passes := order(stream.Repeat(once, 3), pass, 0)
	for i := range passes {
		passes[i] -= i / 100 * 100 // each pass counts on
	}
	require.Equal(t, want, passes[:100])
	require.NotEqual(t, want, passes[100:200])
	require.NotEqual(t, passes[100:200], passes[200:])
}

// Records that fail take no slot: the others come as if they had not been, whatever becomes
// of the bad ones when they are read again.
func TestShufflePassesOverFailures(t *testing.T) {
	var open atomic.Int64
	healed := false
	events := func(loader.Pass, int) (all []any) {
		for i := range 60 {
			switch {
			case i%7 == 3 && !healed, i%11 == 5:
				all = append(all, fmt.Errorf("record %d: %w", i, errBad))
			case i%7 == 3:
				all = append(all, -i)
			case i == 20:
				all = append(all, i, loader.Flush)
			default:
				all = append(all, i)
			}
		}
		return all
	}
	s := stream.Shuffle(counted(&open, 1, events), 8)
	requireMarks(t, s, pass)
	whole := read(t, s, pass, 0)
	require.Len(t, whole, 61)
	want := items(whole)

	for k := range want {
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		for n := 0; n <= k; {
			_, ok, err := next(ctx, r)
			require.True(t, ok || err != nil)
			if ok {
				n++
			}
		}
		mark := markOf(t, r)
		require.NoError(t, r.Close())
		healed = true
		again, err := s.Open(ctx, pass, 0, mark)
		require.NoError(t, err)
		for _, item := range items(drain(t, again, nil)) {
			if item.Value >= 0 {
				require.Equal(t, 1, count1(want[k+1:], item.Value), "from %d: %d", k, item.Value)
			}
		}
		require.NoError(t, again.Close())
		healed = false
	}
	require.Zero(t, open.Load())
}

func count1(items []stream.Item[int], value int) (n int) {
	for _, i := range items {
		if i.Value == value {
			n++
		}
	}
	return n
}

// A mark is a few bytes, however large the buffer, and what is read again is in proportion
// to the buffer.
func TestShuffleMarkIsSmall(t *testing.T) {
	var open atomic.Int64
	s := stream.Shuffle(count(&open, 0, 100_000, 1), 1000)
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	for range 50_000 {
		_, _, err := next(ctx, r)
		require.NoError(t, err)
	}
	mark := markOf(t, r)
	require.NoError(t, r.Close())
	require.Less(t, len(mark), 80)
	var from, drawn, at, read int
	_, err = fmt.Sscanf(string(mark), `{"drawn":%d,"at":%d,"from":%d,"read":%d}`, &drawn, &at, &from, &read)
	require.NoError(t, err)
	require.Equal(t, 51_000, from+read)
	require.Less(t, read, 14_000, "2·size·ln(size)")
}

// Marks that are none, or of other data, are errors.
func TestShuffleRefusesMarks(t *testing.T) {
	var open atomic.Int64
	s := stream.Shuffle(count(&open, 0, 30, 1), 4)
	for _, mark := range []string{
		"{", "1", "[]", `{"drawn":1}`, `{"drawn":1,"at":null,"from":0,"read":5} 1`, `{"drawn":1,"at":null,"from":0,"read":5,"x":1}`,
		`{"drawn":-1,"at":null,"from":0,"read":5}`,
		`{"drawn":6,"at":null,"from":0,"read":5}`,
		`{"drawn":0,"at":null,"from":0,"read":5}`,
		`{"drawn":1,"at":null,"from":0,"read":31}`,
		`{"drawn":1,"at":null,"from":0,"read":9223372036854775807}`,
		`{"drawn":1,"at":null,"from":9223372036854775807,"read":5}`,
		`{"drawn":9223372036854775807,"at":null,"from":9223372036854775807,"read":0}`,
		`{"drawn":1,"at":null,"from":-1,"read":5}`,
		`{"drawn":1,"at":null,"from":3,"read":2}`,
		`{"drawn":1,"at":31,"from":0,"read":5}`,
		`{"drawn":1,"at":{},"from":0,"read":5}`,
		`{"drawn":1,"at":null,"from":0,"read":5,"failed":[[6,1]]}`,
		`{"drawn":1,"at":null,"from":0,"read":5,"failed":[[1,9223372036854775807]]}`,
		`{"drawn":1,"at":null,"from":0,"read":5,"failed":[[1,1],[0,1]]}`,
	} {
		_, err := s.Open(ctx, pass, 0, []byte(mark))
		require.Error(t, err, mark)
		var wrong *stream.MarkError
		if !errors.As(err, &wrong) {
			require.Contains(t, mark, `"at":`, "only the reader below refuses with an error of its own")
		}
	}
	require.Zero(t, open.Load())
}
