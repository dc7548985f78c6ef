package stream_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// busy calls itself temporary.
type busy struct{}

func (busy) Error() string   { return "busy" }
func (busy) Temporary() bool { return true }

// flaky is f, which fails a number of times for each multiple of 10 first.
func flaky(times int) func(context.Context, int) (int, error) {
	failed := map[int]int{}
	return func(_ context.Context, n int) (int, error) {
		if n%10 == 0 && failed[n] < times {
			failed[n]++
			return 0, fmt.Errorf("number %d: %w", n, busy{})
		}
		return n, nil
	}
}

// Each failure is waited for, twice as long each time, and no value is lost or given twice.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		numbers := count(&open, 1, 100, 1)
		s := stream.Retry(stream.Map(numbers, flaky(3)), stream.RetryOptions{Wait: time.Second, MaxWait: 3 * time.Second})
		begin := time.Now()
		require.Equal(t, values(t, numbers, pass, 0), values(t, s, pass, 0))
		require.Equal(t, 10*(1+2+3)*time.Second, time.Since(begin))
		requireMarks(t, s, pass)
		require.Zero(t, open.Load())
	})
}

// An error that stays costs its record, or, where that can't be read at all, all that follow.
func TestRetryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		s := stream.Retry(stream.Map(count(&open, 1, 25, 1), flaky(5)), stream.RetryOptions{})
		begin := time.Now()
		events := read(t, s, pass, 0)
		require.Equal(t, 2*(100+200+400+800)*time.Millisecond, time.Since(begin))
		require.Len(t, events, 25)
		var stayed *stream.RetryError
		require.ErrorAs(t, events[9].err, &stayed)
		require.Equal(t, 5, stayed.Attempts)
		require.ErrorIs(t, events[9].err, busy{})
		require.Equal(t, 11, events[10].item.Value)

		stuck := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) {
			return stuckReader{}, nil
		})
		r, err := stream.Retry(stuck, stream.RetryOptions{Attempts: 2}).Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		begin = time.Now()
		for range 3 {
			_, _, err = next(ctx, r)
			require.ErrorAs(t, err, &stayed)
		}
		require.Equal(t, 100*time.Millisecond, time.Since(begin), "it is broken, and not tried again")
		require.NoError(t, r.Close())
		require.Zero(t, open.Load())
	})
}

type stuckReader struct{}

func (stuckReader) Next(context.Context, *stream.Item[int]) (bool, error) {
	return false, busy{}
}
func (stuckReader) AppendMark(dst []byte) ([]byte, error) { return append(dst, '0'), nil }
func (stuckReader) Close() error                          { return nil }

// A shard that can't be opened is tried again too, at the beginning and in the middle.
func TestRetryOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		numbers := stream.Map(count(&open, 1, 25, 1), flaky(1))
		opens := 0
		s := stream.Retry(stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
			if opens++; opens%2 == 1 {
				return nil, busy{}
			}
			return numbers.Open(ctx, pass, shard, mark)
		}), stream.RetryOptions{})
		require.Len(t, values(t, s, pass, 0), 25)
		require.Equal(t, 6, opens)

		closed := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) { return nil, busy{} })
		_, err := stream.Retry(closed, stream.RetryOptions{Attempts: 3}).Open(ctx, pass, 0, nil)
		require.ErrorContains(t, err, "busy (3 attempts)")
		require.Zero(t, open.Load())
	})
}

// Without marks the shard is read again from its beginning.
func TestRetryWithoutMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		s := stream.Retry(stream.FromSeqs(1, func(context.Context, loader.Pass, int) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for i := range 300 {
					if i == 200 && failed < 2 {
						failed++
						yield(0, busy{})
						return
					}
					if !yield(i, nil) {
						return
					}
				}
			}
		}), stream.RetryOptions{})
		require.Len(t, values(t, s, pass, 0), 300)
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		_, err = r.AppendMark(nil)
		require.ErrorIs(t, err, loader.ErrNoMark)
		require.NoError(t, r.Close())
	})
}

// A wait ends with the call, and the record is tried again by the next.
func TestRetryCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		s := stream.Retry(stream.Map(count(&open, 10, 3, 1), flaky(1)), stream.RetryOptions{Wait: time.Hour})
		r, err := s.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, _, err = next(short, r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, items(drain(t, r, nil)), 3)
		require.NoError(t, r.Close())
		require.Zero(t, open.Load())
	})
}

func TestRetryMistakes(t *testing.T) {
	s := stream.Retry(stream.FromSlice([]int{1}, 1), stream.RetryOptions{Attempts: -1, Wait: -1, MaxWait: -1})
	for _, want := range []string{"Attempts is -1", "Wait is -1ns", "MaxWait is -1ns"} {
		require.ErrorContains(t, s.Err(), want)
	}
}
