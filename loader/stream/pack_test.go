package stream_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// documents are of these lengths; token t of document d is 1000·d+t.
func documents(open *atomic.Int64, shards int, lengths ...int) stream.Stream[[]int] {
	return stream.Map(count(open, 0, len(lengths), shards), nil2(func(d int) []int {
		var tokens []int
		for i := range lengths[d] {
			tokens = append(tokens, 1000*d+i)
		}
		return tokens
	}))
}

func randomLengths(n, most int) (lengths []int) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		lengths = append(lengths, r.IntN(most+1))
	}
	return lengths
}

// firstFit is what Pack promises, said with plain slices: windows of segments.
func firstFit(docs [][]int, window, open int) (done [][][]int) {
	var under [][][]int
	size := func(w [][]int) (n int) {
		for _, segment := range w {
			n += len(segment)
		}
		return n
	}
	for _, doc := range docs {
		for piece := range slices.Chunk(doc, window) {
			i := slices.IndexFunc(under, func(w [][]int) bool { return window-size(w) >= len(piece) })
			if i < 0 && len(under) == open {
				done, under = append(done, under[0]), under[1:]
			}
			if i < 0 {
				under = append(under, nil)
				i = len(under) - 1
			}
			under[i] = append(under[i], piece)
			if size(under[i]) == window {
				done, under = append(done, under[i]), slices.Delete(slices.Clone(under), i, i+1)
			}
		}
	}
	return append(done, under...)
}

func TestPackIsFirstFit(t *testing.T) {
	var open atomic.Int64
	for _, c := range []struct{ window, open, most, docs int }{
		{1, 1, 3, 20}, {8, 1, 8, 30}, {8, 3, 8, 60}, {8, 3, 30, 40}, {8, 3, 5, 0}, {100, 4, 3, 40}, {8, 16, 20, 100},
	} {
		lengths := randomLengths(c.docs, c.most)
		source := documents(&open, 1, lengths...)
		s := stream.Pack(source, c.window, stream.PackOptions[int]{Open: c.open, Pad: -1})
		want := firstFit(values(t, source, pass, 0), c.window, c.open)
		got := values(t, s, pass, 0)
		require.Len(t, got, len(want))
		for i, w := range got {
			require.Len(t, w.Tokens, c.window)
			require.Len(t, w.Segments, c.window)
			require.Len(t, w.Positions, c.window)
			at := 0
			for number, segment := range want[i] {
				for position, token := range segment {
					require.Equal(t, token, w.Tokens[at])
					require.EqualValues(t, number+1, w.Segments[at])
					require.EqualValues(t, position, w.Positions[at])
					at++
				}
			}
			for ; at < c.window; at++ {
				require.Equal(t, -1, w.Tokens[at])
				require.Zero(t, w.Segments[at])
				require.Zero(t, w.Positions[at])
			}
		}
		requireMarks(t, s, pass)
	}
	require.Zero(t, open.Load())
}

// Windows say where they come from, belong to whoever has got them, and stand over failures.
func TestPackWindowsAreOwned(t *testing.T) {
	var open atomic.Int64
	lengths := randomLengths(60, 9)
	source := documents(&open, 2, lengths...)
	s := stream.Shuffle(stream.Pack(source, 10, stream.PackOptions[int]{Open: 2}), 4)
	for shard := range 2 {
		for _, item := range items(read(t, s, pass, shard)) {
			require.EqualValues(t, item.Value.Tokens[0]/1000, item.Origin.Record)
			require.EqualValues(t, shard, item.Origin.Record%2)
		}
	}
	requireMarks(t, s, pass)

	bad := stream.Map(counted(&open, 1, func(loader.Pass, int) (all []any) {
		for i := range 50 {
			if all = append(all, i%7+1); i%9 == 5 {
				all = append(all, errBad, loader.Flush)
			}
		}
		return all
	}), nil2(func(n int) []int { return make([]int, n) }))
	requireMarks(t, stream.Pack(bad, 10, stream.PackOptions[int]{Open: 3}), pass)
	require.Zero(t, open.Load())
}

// With the windows that are open by default little is padding, and a mark is small.
func TestPackFillsWindows(t *testing.T) {
	var open atomic.Int64
	const window = 2048
	lengths := randomLengths(3000, 600)
	s := stream.Pack(documents(&open, 1, lengths...), window, stream.PackOptions[int]{})
	r, err := s.Open(ctx, pass, 0, nil)
	require.NoError(t, err)
	tokens, windows, longest := 0, 0, 0
	drain(t, r, func(int) { longest = max(longest, len(markOf(t, r))) })
	require.NoError(t, r.Close())
	for _, w := range values(t, s, pass, 0) {
		windows++
		tokens += slices.IndexFunc(append(w.Segments, 0), func(s int32) bool { return s == 0 })
	}
	require.Greater(t, float64(tokens)/float64(windows*window), 0.97)
	require.Less(t, longest, 3000)
}

// Documents of no tokens, for ever, don't hang what is cancelled.
func TestNothingForEverIsCancelled(t *testing.T) {
	gone, cancel := context.WithCancelCause(ctx)
	cause := errors.New("the user has gone")
	cancel(cause)
	s := endless(1)
	none := stream.Source[int]{Stream: stream.Filter(s, func(int) bool { return false }), Weight: 1}
	for name, open := range map[string]func() error{
		"Pack":     opened(gone, stream.Pack(stream.Map(s, nil2(func(int) []int { return nil })), 8, stream.PackOptions[int]{})),
		"Filter":   opened(gone, none.Stream),
		"Map":      opened(gone, stream.Map(s, func(context.Context, int) (int, error) { return 0, loader.Skip })),
		"Skip":     opened(gone, stream.Skip(s, math.MaxInt64)),
		"Mix":      opened(gone, stream.Mix(stream.UntilAllEnded, none)),
		"Repeat":   opened(gone, stream.Repeat(none.Stream, math.MaxInt)),
		"ByLength": opened(gone, stream.ByLength(none.Stream, 1, 1, lengthOf)),
	} {
		require.ErrorIs(t, open(), cause, name)
	}
}

// opened is what the first Next of a shard returns.
func opened[T any](with context.Context, s stream.Stream[T]) func() error {
	return func() error {
		r, err := s.Open(with, pass, 0, nil)
		if err != nil {
			return err
		}
		_, _, err = next(with, r)
		return errors.Join(err, r.Close())
	}
}

func TestPackRefusesMarks(t *testing.T) {
	var open atomic.Int64
	s := stream.Pack(documents(&open, 1, 3, 4, 5, 20), 8, stream.PackOptions[int]{Open: 2})
	const tail = `"at":null,"from":0,"read":3}`
	for _, mark := range []string{
		"{", `{"windows":[[0,0,3,1,0,4]],"at":null,"from":0,"read":5}`,
		`{"windows":[[]],` + tail, `{"windows":[[0,0]],` + tail, `{"windows":[[3,0,1]],` + tail, `{"windows":[[-1,0,1]],` + tail,
		`{"windows":[[0,0,0]],` + tail, `{"windows":[[0,0,9]],` + tail, `{"windows":[[0,0,4]],` + tail, `{"windows":[[0,3,1]],` + tail,
		`{"windows":[[0,9223372036854775807,1]],` + tail, `{"windows":[[1,0,1,0,0,1]],` + tail, `{"windows":[[0,0,3],[1,0,4],[2,0,5]],` + tail,
		`{"ready":-1,` + tail, `{"ready":2,"windows":[[0,0,3]],` + tail, `{"ready":9223372036854775807,` + tail, `{"rest":-1,` + tail, `{"rest":6,` + tail,
		`{"windows":[[0,0,3]],"at":null,"from":9223372036854775807,"read":3}`,
	} {
		_, err := s.Open(ctx, pass, 0, []byte(mark))
		var wrong *stream.MarkError
		require.ErrorAs(t, err, &wrong, mark)
		require.Zero(t, open.Load(), mark)
	}
	wrong := stream.Pack(documents(&open, 1, 3), 0, stream.PackOptions[int]{Open: -1})
	require.ErrorContains(t, wrong.Err(), "window is 0")
	require.ErrorContains(t, wrong.Err(), "Open is -1")
}
