package loader_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

// A consumer may leave a Run for hours. Meanwhile it fills the slots that there are, and
// then does nothing; nothing is late when the consumer comes back.
func TestARunRestsWhileItsConsumerIsAway(t *testing.T) {
	const samples, batchSize, slots = 100, 2, 3
	for _, source := range sources {
		for _, workers := range []int{0, 1, 4} {
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int64
				l := source.open(t, samples, batchSize, func(int) time.Duration {
					reads.Add(1)
					return time.Millisecond
				}, loader.Options{Workers: workers, StallTimeout: time.Second})
				mem := heap(t, l, slots)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				for n := 1; n <= 5; n++ {
					time.Sleep(24 * time.Hour)
					synctest.Wait()
					require.EqualValues(t, (n-1+slots)*batchSize, reads.Load())
					require.True(t, run.Ready())
					_, err := read(l, run, mem)
					require.NoError(t, err)
				}
				require.Zero(t, run.Stats().WaitBatch)
				require.NoError(t, run.Close())
			})
		}
	}
}

// A live source that had nothing to give while nobody asked has not stalled.
func TestOnlyTheTimeInNextCountsForAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan int)
		seq := func(ctx context.Context, _ loader.Pass) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) {
				for {
					select {
					case r := <-requests:
						if !yield(r, nil) {
							return
						}
					case <-ctx.Done():
						return
					}
				}
			}
		}
		encode := func(_ context.Context, n int, row *loader.Row) error {
			writeNumber(n, row)
			return nil
		}
		l, err := loader.NewIterable(loader.FromSeqFunc(numberFields, seq, encode), 2, loader.Options{StallTimeout: time.Second})
		require.NoError(t, err)
		mem := heap(t, l, 2)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		requests <- 0 // the batch is open
		for n := 1; n < 7; n += 2 {
			time.Sleep(time.Hour)
			go func() {
				time.Sleep(900 * time.Millisecond)
				requests <- n
				requests <- n + 1
			}()
			short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := run.Next(short)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = read(l, run, mem)
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err = run.Next(short)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Hour)
		began := time.Now()
		_, err = run.Next(t.Context())
		var stall *loader.StallError
		require.ErrorAs(t, err, &stall)
		require.Equal(t, 500*time.Millisecond, time.Since(began), "with those of the call before")
		require.Equal(t, time.Second, stall.Age)
		require.NoError(t, run.Close())
	})
}
