package stream_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// What it gives is what Map gives, failures and values that are left out included.
func TestParallelMapIsMap(t *testing.T) {
	var open atomic.Int64
	events := func(loader.Pass, int) (all []any) {
		for i := range 200 {
			switch {
			case i%31 == 30:
				all = append(all, errBad)
			case i == 77:
				all = append(all, loader.Flush)
			default:
				all = append(all, i)
			}
		}
		return all
	}
	f := func(_ context.Context, n int) (int, error) {
		switch n % 10 {
		case 3:
			return 0, loader.Skip
		case 4:
			return 0, fmt.Errorf("number %d", n)
		case 5:
			panic(n)
		}
		return -n, nil
	}
	s := counted(&open, 1, events)
	want := read(t, stream.Map(s, f), pass, 0)
	for _, workers := range []int{1, 2, 7} {
		p := stream.ParallelMap(s, workers, f)
		got := read(t, p, pass, 0)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i].item, got[i].item)
			require.Equal(t, want[i].err == nil, got[i].err == nil)
		}
	}
	requireMarks(t, stream.ParallelMap(s, 3, f), pass)
	requireMarksIfAny(t, stream.ParallelMap(stream.Shuffle(s, 20), 3, f), pass)
	require.Zero(t, open.Load())
}

// Four calls at a time, in virtual time.
func TestParallelMapIsParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stream.ParallelMap(stream.FromSlice(make([]int, 16), 1), 4, func(_ context.Context, n int) (int, error) {
			time.Sleep(time.Second)
			return n, nil
		})
		begin := time.Now()
		require.Len(t, values(t, p, pass, 0), 16)
		require.Equal(t, 4*time.Second, time.Since(begin))
	})
}

// f that ends its goroutine fails its value; the others have a worker yet.
func TestParallelMapGoexit(t *testing.T) {
	p := stream.ParallelMap(stream.FromSlice([]int{0, 1, 2, 3, 4, 5}, 1), 1, func(_ context.Context, n int) (int, error) {
		if n%2 == 1 {
			runtime.Goexit()
		}
		return n, nil
	})
	events := read(t, p, pass, 0)
	require.Len(t, events, 6)
	for i, e := range events {
		var exit *loader.GoexitError
		if i%2 == 1 {
			require.ErrorAs(t, e.err, &exit)
		} else {
			require.Equal(t, i, e.item.Value)
		}
	}
}

// A reader below that panics, or ends its goroutine, fails for ever.
func TestParallelMapOfBrokenReaders(t *testing.T) {
	for name, breaks := range map[string]func(){
		"panic": func() { panic(errBad) }, "Goexit": runtime.Goexit,
	} {
		below := stream.Map(stream.FromSlice([]int{1, 2}, 1), func(_ context.Context, n int) (int, error) { return n, nil })
		broken := stream.New(1, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (stream.Reader[int], error) {
			r, err := below.Open(ctx, pass, shard, mark)
			return &breaking{Reader: r, breaks: breaks}, err
		})
		p := stream.ParallelMap(broken, 2, nil2(func(n int) int { return n }))
		r, err := p.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		_, ok, err := next(ctx, r)
		require.True(t, ok && err == nil, name)
		for range 3 {
			_, ok, err = next(ctx, r)
			require.False(t, ok)
			require.Error(t, err, name)
		}
		require.NoError(t, r.Close())
	}
}

// So does one that breaks when it is to mark its place.
func TestParallelMapOfBrokenMarks(t *testing.T) {
	for name, breaks := range map[string]func(){
		"panic": func() { panic(errBad) }, "Goexit": runtime.Goexit,
	} {
		broken := stream.New(1, func(context.Context, loader.Pass, int, []byte) (stream.Reader[int], error) {
			return &breakingMarks{breaks: breaks}, nil
		})
		r, err := stream.ParallelMap(broken, 2, nil2(func(n int) int { return n })).Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		n := 0
		for ; ; n++ {
			if _, _, err = next(ctx, r); err != nil {
				break
			}
		}
		require.Equal(t, 64, n, name)
		_, _, again := next(ctx, r)
		require.Equal(t, err, again)
		require.NoError(t, r.Close())
	}
}

type breakingMarks struct {
	counter
	breaks func()
	marks  int
}

func (b *breakingMarks) AppendMark(dst []byte) ([]byte, error) {
	if b.marks++; b.marks > 1 {
		b.breaks()
	}
	return b.counter.AppendMark(dst)
}

type breaking struct {
	stream.Reader[int]
	breaks func()
	n      int
}

func (b *breaking) Next(ctx context.Context, item *stream.Item[int]) (ok bool, err error) {
	if b.n++; b.n == 2 {
		b.breaks()
	}
	return b.Reader.Next(ctx, item)
}

// A call of f is under way when all is closed, and one more when a Next is cancelled.
func TestParallelMapCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int64
		p := stream.ParallelMap(count(&open, 0, 100, 1), 3, func(ctx context.Context, n int) (int, error) {
			if n < 5 {
				return n, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		r, err := p.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		for range 5 {
			_, ok, err := next(ctx, r)
			require.True(t, ok && err == nil)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for range 2 {
			_, _, err = next(short, r)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.NoError(t, r.Close())
		require.Zero(t, open.Load())

		opened, cancel := context.WithCancel(ctx)
		r, err = p.Open(opened, pass, 5, nil)
		require.Error(t, err)
		require.Nil(t, r)
		r, err = p.Open(opened, pass, 0, []byte(`{"read":7,"at":null}`))
		require.NoError(t, err)
		time.AfterFunc(time.Second, cancel)
		_, _, err = next(ctx, r)
		require.ErrorIs(t, err, context.Canceled, "the context of Open has ended")
		require.NoError(t, r.Close())

		unused, err := p.Open(ctx, pass, 0, nil)
		require.NoError(t, err)
		require.NoError(t, unused.Close(), "nothing was begun")
		require.Zero(t, open.Load())
	})
}

func TestParallelMapRefusesMarks(t *testing.T) {
	p := stream.ParallelMap(stream.FromSlice([]int{1, 2, 3}, 1), 2, nil2(func(n int) int { return n }))
	for _, mark := range []string{"{", `{"read":1}`, `{"read":-1,"at":null}`, `{"read":4,"at":null}`, `{"read":9223372036854775807,"at":1}`} {
		_, err := p.Open(ctx, pass, 0, []byte(mark))
		var wrong *stream.MarkError
		require.ErrorAs(t, err, &wrong, mark)
	}
	require.ErrorContains(t, stream.ParallelMap(p, 0, nil2(func(n int) int { return n })).Err(), "workers is 0, want 1 to 65536")
}

// A Next whose context ends while a function has not returned tells the context's cause.
func TestParallelMapTellsTheCause(t *testing.T) {
	ended := make(chan struct{})
	p := stream.ParallelMap(stream.FromSlice([]int{0}, 1), 1, func(context.Context, int) (int, error) {
		<-ended
		return 0, nil
	})
	r, err := p.Open(t.Context(), loader.Pass{}, 0, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user has gone")
	cancel(cause)
	var item stream.Item[int]
	_, err = r.Next(ctx, &item)
	require.ErrorIs(t, err, cause)
	close(ended)
	ok, err := r.Next(t.Context(), &item)
	require.True(t, ok, "nothing is lost")
	require.NoError(t, err)
	require.NoError(t, r.Close())
}
