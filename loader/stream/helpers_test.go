package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

var ctx = context.Background()

// count is the stream of first, first+1 and so on, n of them over the shards in turn, whose
// readers are counted.
func count(open *atomic.Int64, first, n, shards int) stream.Stream[int] {
	return counted(open, shards, func(_ loader.Pass, shard int) []any {
		var values []any
		for i := shard; i < n; i += shards {
			values = append(values, first+i)
		}
		return values
	})
}

// counted is a stream of what events returns for a shard: values, and errors.
func counted(open *atomic.Int64, shards int, events func(pass loader.Pass, shard int) []any) stream.Stream[int] {
	return stream.New(shards, func(_ context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
		r := &eventReader{events: events(pass, shard), open: open}
		if mark != nil {
			if err := json.Unmarshal(mark, &r.next); err != nil {
				return nil, err
			}
			if r.next < 0 || r.next > len(r.events) {
				return nil, fmt.Errorf("place %d of %d", r.next, len(r.events))
			}
		}
		open.Add(1)
		return r, nil
	})
}

type eventReader struct {
	events []any
	next   int
	open   *atomic.Int64
	closed bool
}

func (r *eventReader) Next(_ context.Context, item *stream.Item[int]) (ok bool, err error) {
	if r.closed {
		panic("Next of a closed reader")
	}
	if r.next == len(r.events) {
		return false, nil
	}
	r.next++
	switch e := r.events[r.next-1].(type) {
	case error:
		return false, e
	default:
		value := e.(int)
		*item = stream.Item[int]{Value: value, Origin: loader.Origin{File: "numbers", Record: int64(value)}}
		return true, nil
	}
}

func (r *eventReader) AppendMark(dst []byte) ([]byte, error) {
	return fmt.Append(dst, r.next), nil
}

func (r *eventReader) Close() error {
	if r.closed {
		panic("Close of a closed reader")
	}
	r.closed = true
	r.open.Add(-1)
	return nil
}

// next is r's Next, with the item beside what it returns.
func next[T any](ctx context.Context, r stream.Reader[T]) (item stream.Item[T], ok bool, err error) {
	if ok, err = r.Next(ctx, &item); !ok || err != nil {
		item = stream.Item[T]{}
	}
	return item, ok, err
}

var errBad = errors.New("bad record")

// event is what a Next returned.
type event[T any] struct {
	item stream.Item[T]
	err  error
}

// drain reads r to its end. Behind each item it calls at with the number of those so far,
// unless at is nil.
func drain[T any](t require.TestingT, r stream.Reader[T], at func(items int)) (events []event[T]) {
	items := 0
	for {
		item, ok, err := next(ctx, r)
		if err == nil && !ok {
			_, ok, err := next(ctx, r)
			require.True(t, !ok && err == nil, "an end is an end")
			if at != nil {
				at(items)
			}
			return events
		}
		events = append(events, event[T]{item, err})
		require.Less(t, len(events), 100_000)
		if err == nil {
			items++
			if at != nil {
				at(items)
			}
		}
	}
}

// read is all of a shard.
func read[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass, shard int) []event[T] {
	r, err := s.Open(ctx, pass, shard, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	return drain(t, r, nil)
}

// values are those of a shard, which has no errors.
func values[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass, shard int) (all []T) {
	for _, e := range read(t, s, pass, shard) {
		require.NoError(t, e.err)
		all = append(all, e.item.Value)
	}
	return all
}

// all are the values of a stream without errors, one of each shard in turn as a loader takes
// them.
func all[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass) (all []T) {
	var shards [][]T
	for i := range s.Shards() {
		shards = append(shards, values(t, s, pass, i))
	}
	for n := 0; ; n++ {
		more := false
		for _, shard := range shards {
			if n < len(shard) {
				all = append(all, shard[n])
				more = true
			}
		}
		if !more {
			return all
		}
	}
}

// items are the events without the errors.
func items[T any](events []event[T]) (items []stream.Item[T]) {
	for _, e := range events {
		if e.err == nil {
			items = append(items, e.item)
		}
	}
	return items
}

// requireMarks stops each shard behind each item, goes on from the mark, and stops there
// again behind some of them: what is read is always the same. In shards of more than 200 items
// it leaves out stops. It returns the longest mark.
func requireMarks[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass) (longest int) {
	return requireMarksAt(t, s, pass, func(r stream.Reader[T]) ([]byte, bool) { return markOf(t, r), true }, func(mark, same []byte) {
		require.JSONEq(t, string(mark), string(same), "nothing was read")
	})
}

// requireMarksIfAny is requireMarks, but places may have none, or several.
func requireMarksIfAny[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass) {
	requireMarksAt(t, s, pass, func(r stream.Reader[T]) ([]byte, bool) {
		if _, err := r.AppendMark(nil); errors.Is(err, loader.ErrNoMark) {
			return nil, false
		}
		return markOf(t, r), true
	}, func(_, _ []byte) {})
}

func requireMarksAt[T any](t require.TestingT, s stream.Stream[T], pass loader.Pass,
	markOf func(stream.Reader[T]) ([]byte, bool), equal func(mark, same []byte),
) (longest int) {
	for shard := range s.Shards() {
		want := nonNil(items(read(t, s, pass, shard)))
		r, err := s.Open(ctx, pass, shard, nil)
		require.NoError(t, err)
		stops, twice := 1, max(2, len(want)/12)
		if len(want) > 200 {
			stops = len(want) / 100
		}
		drain(t, r, func(n int) {
			if n%stops != 0 {
				return
			}
			mark, ok := markOf(r)
			if !ok {
				return
			}
			longest = max(longest, len(mark))
			again, err := s.Open(ctx, pass, shard, mark)
			require.NoError(t, err, "%s", mark)
			same, ok := markOf(again)
			require.True(t, ok)
			equal(mark, same)
			got := items(drain(t, again, func(m int) {
				if (m+n)%twice != 1 {
					return
				}
				mark, ok := markOf(again)
				if !ok {
					return
				}
				last, err := s.Open(ctx, pass, shard, mark)
				require.NoError(t, err, "%s", mark)
				require.Equal(t, want[n+m:], nonNil(items(drain(t, last, nil))), "shard %d from %d, then from %d: %s", shard, n, n+m, mark)
				require.NoError(t, last.Close())
			}))
			require.Equal(t, want[n:], nonNil(got), "shard %d from %d: %s", shard, n, mark)
			require.NoError(t, again.Close())
		})
		require.NoError(t, r.Close())
	}
	return longest
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// markOf is the mark of the place where r stands: behind a prefix that stays as it is, and
// valid.
func markOf[T any](t require.TestingT, r stream.Reader[T]) []byte {
	out, err := r.AppendMark([]byte("before"))
	require.NoError(t, err)
	require.Equal(t, "before", string(out[:6]))
	require.True(t, json.Valid(out[6:]), "%s", out[6:])
	return out[6:]
}

// nil2 is f for Map, without an error.
func nil2[T, U any](f func(T) U) func(context.Context, T) (U, error) {
	return func(_ context.Context, value T) (U, error) { return f(value), nil }
}
