package loader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leat-go/leat/loader"
)

// What takes longer than the limit is left out, as what fails at once is.
func TestAStreamsSampleThatHangsIsLeftOutInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 12), 1, 4).Draw(rt, "sizes")
		sizes[0]++
		ends := rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "", "slow", "error", "panic", "late", "ignores"}), 60, 60).Draw(rt, "ends")
		o := loader.Options{
			Epochs: 1, OnError: loader.SkipFailed, GracePeriod: time.Minute,
			Workers: rapid.IntRange(1, 3).Draw(rt, "workers"),
		}
		batchSize := rapid.IntRange(1, 5).Draw(rt, "batch")
		read := func(limited bool) (batches []batch, err error) {
			c := &cut{sizes: sizes, every: 3}
			c.encode = func(ctx context.Context, number int) error {
				switch end := ends[(number/1000*17+number%1000)%len(ends)]; {
				case end == "slow":
					time.Sleep(500 * time.Millisecond)
				case end == "error", (end == "late" || end == "ignores") && !limited:
					return errors.New("bad")
				case end == "panic":
					panic("bad")
				case end == "late":
					<-ctx.Done()
					return ctx.Err()
				case end == "ignores":
					time.Sleep(time.Minute / 2)
				}
				return nil
			}
			if limited {
				o.ReadTimeout = time.Second
			}
			synctest.Test(t, func(t *testing.T) {
				l := newCut(t, c, batchSize, o)
				mem := heap(t, l, 3)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				batches, err = readEpoch(l, run, mem)
				for i := range batches {
					batches[i].filled.After = loader.Cursor{} // of a track of its own
				}
				require.NoError(t, run.Close())
				require.Equal(t, 3, mem.Free())
				time.Sleep(time.Hour) // until what is late has returned
			})
			require.Equal(rt, c.opened.Load(), c.closed.Load())
			return batches, err
		}
		want, wantErr := read(false)
		got, err := read(true)
		require.Equal(rt, want, got)
		require.Equal(rt, errors.Is(wantErr, loader.ErrEpochEnd), errors.Is(err, loader.ErrEpochEnd))
	})
}

func TestAStreamsSampleThatHangsFailsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cut{sizes: []int{10, 10}, encode: func(_ context.Context, number int) error {
			if number == numberOf(0, 1, 3) {
				time.Sleep(time.Hour)
			}
			return nil
		}}
		l := newCut(t, c, 4, loader.Options{Epochs: 1, ReadTimeout: time.Second, GracePeriod: time.Second})
		mem := newLedger(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		began := time.Now()
		batches, err := readEpoch(l, run, mem.Heap)
		require.Equal(t, time.Second, time.Since(began))
		require.Len(t, batches, 1)
		var failure *loader.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, loader.StageEncode, failure.Stage)
		require.Equal(t, 1, failure.Shard)
		require.Equal(t, "shard-1", failure.Origin.File)
		var timeout *loader.TimeoutError
		require.ErrorAs(t, err, &timeout)
		require.Contains(t, string(timeout.Stack), "TestAStreamsSampleThatHangsFailsInTime")
		require.NoError(t, run.Close())
		require.Empty(t, mem.quarantined)
		require.Equal(t, 3, mem.Free())
		time.Sleep(time.Hour)
	})
}

func TestTooManyLateSamplesOfAStreamEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := &cut{sizes: []int{500, 500}, encode: func(context.Context, int) error {
			<-release
			return nil
		}}
		l := newCut(t, c, 4, loader.Options{Epochs: 1, OnError: loader.SkipFailed, ReadTimeout: time.Second, GracePeriod: time.Second})
		mem := heap(t, l, 3)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		_, err := run.Next(t.Context())
		require.ErrorContains(t, err, "late at once, more than 64")
		require.NoError(t, run.Close())
		require.Equal(t, 3, mem.Free())
		close(release)
	})
}
