package stream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// holding are operators that hold values back, on a stream of numbers.
func holding(s stream.Stream[int]) map[string]stream.Stream[int] {
	first := func(w stream.Packed[int]) int { return w.Tokens[0] }
	return map[string]stream.Stream[int]{
		"Shuffle":  stream.Shuffle(s, 5),
		"ByLength": stream.ByLength(s, 2, 3, lengthOf),
		"Pack":     stream.Map(stream.Pack(stream.Map(s, nil2(document)), 5, stream.PackOptions[int]{}), nil2(first)),
		"Zip":      stream.Zip(s, s, func(_ context.Context, a, b int) (int, error) { return 100*a + b, nil }),
		"Cache":    stream.Cache(s, 0, one),
		"held":     stream.Cache(s, 1<<20, one),
		"nested":   stream.Shuffle(stream.Zip(stream.Shuffle(s, 3), stream.Cache(s, 3, one), func(_ context.Context, a, b int) (int, error) { return 100*a + b, nil }), 4),
	}
}

// spotty gives numbers, and failures between them: also in front of the first and behind the
// last.
func spotty(open *atomic.Int64, failures ...int) stream.Stream[int] {
	return counted(open, 1, func(loader.Pass, int) (events []any) {
		for n := range 20 {
			for i := range failures[n%len(failures)] {
				events = append(events, fmt.Errorf("%w %d.%d", errBad, n, i))
			}
			events = append(events, n)
		}
		return append(events, errBad, errBad)
	})
}

// Behind each failure there is a mark too, and what comes behind it is what came before.
func TestMarksBehindFailures(t *testing.T) {
	for _, failures := range [][]int{{1}, {2, 0}, {0, 0, 1, 3}} {
		var open atomic.Int64
		for name, s := range holding(spotty(&open, failures...)) {
			t.Run(fmt.Sprintf("%s/%v", name, failures), func(t *testing.T) {
				want := outcomes(read(t, s, pass, 0))
				for round := range 2 { // from the marks, and from those of readers of the marks
					r, err := s.Open(ctx, pass, 0, nil)
					require.NoError(t, err)
					for n := range want {
						_, ok, err := next(ctx, r)
						require.True(t, ok || err != nil)
						mark := markOf(t, r)
						if round == 1 {
							require.NoError(t, r.Close())
							r, err = s.Open(ctx, pass, 0, mark)
							require.NoError(t, err)
							continue
						}
						again, err := s.Open(ctx, pass, 0, mark)
						require.NoError(t, err, "%s", mark)
						require.Equal(t, want[n+1:], outcomes(drain(t, again, nil)), "behind %d: %s", n, mark)
						require.NoError(t, again.Close())
					}
					_, ok, err := next(ctx, r)
					require.True(t, !ok && err == nil)
					require.NoError(t, r.Close())
				}
			})
		}
		require.Zero(t, open.Load())
	}
}

func outcomes[T any](events []event[T]) (all []string) {
	all = []string{}
	for _, e := range events {
		if e.err != nil {
			all = append(all, e.err.Error())
		} else {
			all = append(all, fmt.Sprint(e.item.Value))
		}
	}
	return all
}

// A long row of records that fail ends no run, and a reader that is broken does.
func TestManyFailuresInARow(t *testing.T) {
	fields := []loader.Field{{Name: "x", DType: dtype.Int64}}
	for _, broken := range []bool{false, true} {
		var open atomic.Int64
		numbers := counted(&open, 1, func(loader.Pass, int) []any {
			events := []any{1, 2, 3}
			for range 450 {
				events = append(events, errBad)
			}
			return append(events, 4, 5)
		})
		s := numbers
		if broken {
			s = stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
				r, err := numbers.Open(ctx, pass, shard, mark)
				return &stopping{Reader: r}, err
			})
		}
		for name, s := range holding(s) {
			written := atomic.Int64{}
			l, err := loader.NewStream(stream.Encode(s, fields, func(_ context.Context, n int, row *loader.Row) error {
				written.Add(1)
				return loader.Write(row, "x", int64(n))
			}), 1, loader.Options{Epochs: 1, OnError: loader.SkipFailed})
			require.NoError(t, err)
			mem, err := loader.NewHeap(l.Layout().Size(), 2)
			require.NoError(t, err)
			run := l.Start(ctx, loader.Cursor{}, mem)
			var f loader.Filled
			for err == nil {
				if f, err = run.Next(ctx); err == nil {
					mem.Put(f.Slot)
				}
			}
			if broken {
				require.ErrorContains(t, err, "without getting on", name)
			} else {
				require.ErrorIs(t, err, loader.ErrEpochEnd, name)
				require.Positive(t, written.Load(), name)
			}
			require.NoError(t, run.Close())
		}
		require.Zero(t, open.Load())
	}
}

// stopping breaks behind two items.
type stopping struct {
	stream.Reader[int]
	n int
}

func (s *stopping) Next(ctx context.Context, item *stream.Item[int]) (bool, error) {
	if s.n == 2 {
		return false, errBad
	}
	s.n++
	return s.Reader.Next(ctx, item)
}
