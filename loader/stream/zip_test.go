package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

func join(_ context.Context, a, b int) (string, error) { return fmt.Sprint(a, "+", b), nil }

func TestZip(t *testing.T) {
	var open atomic.Int64
	s := stream.Zip(count(&open, 0, 7, 2), count(&open, 100, 7, 2), join)
	require.Equal(t, []string{"1+101", "3+103", "5+105"}, values(t, s, pass, 1))
	requireMarks(t, s, pass)

	same := stream.Zip(stream.Shuffle(count(&open, 0, 20, 1), 5), stream.Shuffle(count(&open, 0, 20, 1), 5),
		func(_ context.Context, a, b int) (bool, error) { return a == b, nil })
	require.NotContains(t, values(t, same, pass, 0), false, "what is shuffled alike stays together")
	requireMarks(t, same, pass)
	require.Zero(t, open.Load())
}

// Records beside ones that fail are left out, so that what belongs together stays so.
func TestZipOfFailures(t *testing.T) {
	var open atomic.Int64
	a := counted(&open, 1, func(loader.Pass, int) []any {
		return []any{0, errBad, 2, loader.Flush, 3, 4, errBad, errBad, 7, 8, errBad}
	})
	b := counted(&open, 1, func(loader.Pass, int) []any {
		return []any{0, 1, 2, errBad, 4, loader.Flush, 5, errBad, 7, 8, 9}
	})
	s := stream.Zip(a, b, func(_ context.Context, a, b int) (int, error) {
		if a != b {
			return 0, errors.New("these don't belong together")
		}
		return a, nil
	})
	events := read(t, s, pass, 0)
	var got []int
	failures := 0
	for _, e := range events {
		switch {
		case e.err == nil:
			got = append(got, e.item.Value)
		case e.err != loader.Flush:
			require.ErrorIs(t, e.err, errBad)
			failures++
		}
	}
	require.Equal(t, []int{0, 2, 4, 7, 8}, got)
	require.Equal(t, 5, failures)
	requireMarks(t, s, pass)
	requireMarks(t, stream.Shuffle(s, 3), pass)
	require.Zero(t, open.Load())
}

func TestZipUneven(t *testing.T) {
	var open atomic.Int64
	for _, c := range []struct{ a, b, longer int }{{2, 3, 1}, {3, 2, 0}, {0, 1, 1}} {
		s := stream.Zip(count(&open, 0, c.a, 1), count(&open, 0, c.b, 1), join)
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		for range min(c.a, c.b) {
			_, ok, err := next(ctx, r)
			require.True(t, ok && err == nil)
		}
		for range 2 {
			_, ok, err := next(ctx, r)
			require.False(t, ok)
			var uneven *stream.UnevenError
			require.ErrorAs(t, err, &uneven)
			require.Equal(t, c.longer, uneven.Longer)
		}
		require.NoError(t, r.Close())
	}
	require.Zero(t, open.Load())
}

// The second stream can't be opened: the first is closed.
func TestZipFailsToOpen(t *testing.T) {
	var open atomic.Int64
	broken := stream.New(2, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) { return nil, errBad })
	_, err := stream.Zip(count(&open, 0, 3, 2), broken, join).Open(ctx, pass, 0, nil)
	require.ErrorIs(t, err, errBad)
	require.Zero(t, open.Load())

	s := stream.Zip(count(&open, 0, 3, 2), count(&open, 0, 3, 3), join)
	require.ErrorContains(t, s.Err(), "stream: Zip: the number of shards of stream 1 is 3, want 2, as stream 0 has")
	good := stream.Zip(count(&open, 0, 3, 2), count(&open, 0, 3, 2), join)
	for _, mark := range []string{"1", `{"a":null}`, `{"b":null}`, `{"a":1,"b":7}`} {
		_, err := good.Open(ctx, pass, 0, []byte(mark))
		require.Error(t, err, mark)
	}
	require.Zero(t, open.Load())
}
