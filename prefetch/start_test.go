package prefetch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// costs is a dataset each of whose reads takes so long.
func costs(n int, read time.Duration) canary {
	return canary{n: n, width: 8, read: func(ctx context.Context, _ int) error {
		select {
		case <-time.After(read):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// What Start has filled need not be waited for.
func TestStartFillsBeforeAnybodyReads(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				data := costs(40, 10*ms)
				var reads atomic.Int32
				read := data.read
				data.read = func(ctx context.Context, i int) error {
					reads.Add(1)
					return read(ctx, i)
				}
				pf := form.open(t, data, 1, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{Depth: 3, Memory: prefetch.Memory{HostSlots: 3}}, 0)
				time.Sleep(time.Second)
				require.Zero(t, reads.Load(), "nothing runs before Start")
				require.NoError(t, pf.Start(ctx))
				cancel() // the samples' contexts don't end with it
				time.Sleep(time.Second)
				filled := int(reads.Load())
				require.GreaterOrEqual(t, filled, 3)
				require.Equal(t, prefetch.Stats{}.Batches, pf.Stats().Batches)
				require.NoError(t, pf.Start(t.Context()), "again it does nothing")
				time.Sleep(time.Second)
				require.EqualValues(t, filled, reads.Load())

				start, batches := time.Now(), 0
				for _, err := range pf.All(t.Context()) {
					require.NoError(t, err)
					if batches++; batches == 3 {
						require.Zero(t, time.Since(start))
					}
				}
				require.Equal(t, 40, batches)
				require.EqualValues(t, 40, reads.Load())
				require.NoError(t, pf.Start(t.Context()), "nothing is left to fill")
				time.Sleep(time.Second)
				require.EqualValues(t, 40, reads.Load())
				closes(t, pf)
				require.ErrorIs(t, pf.Start(t.Context()), prefetch.ErrClosed)
			})
		})
	}
}

func TestStartBesideAReader(t *testing.T) {
	eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
		require.NoError(t, pf.Start(t.Context()))
		reader, err := pf.Open(t.Context())
		require.NoError(t, err)
		require.Equal(t, prefetch.ErrBusy, pf.Start(t.Context()))
		b, err := reader.Next(t.Context())
		require.NoError(t, err)
		b.Release()
		require.Equal(t, prefetch.ErrBusy, pf.Start(t.Context()))
		require.NoError(t, reader.Close())
		require.NoError(t, pf.Start(t.Context()))
		require.Equal(t, turns(2, 3)[1:], some(t, pf.All(t.Context()), -1, ""))
	})
}

// Behind a Start the place may still be another: what was filled for the first is given up,
// its goroutines have ended, and not a sample more is read for it.
func TestASeekBehindStart(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late atomic.Bool
				data := costs(40, 10*ms)
				read := data.read
				data.read = func(ctx context.Context, i int) error {
					if late.Load() && i < 20 {
						t.Errorf("sample %d is read behind the Seek", i)
					}
					return read(ctx, i)
				}
				pf := form.open(t, data, 4, loader.Options{Workers: 3, Epochs: 1}, prefetch.Options{}, 0)
				require.NoError(t, pf.Start(t.Context()))
				time.Sleep(105 * ms)
				require.NoError(t, pf.Seek(0, 20))
				late.Store(true)
				synctest.Wait() // a goroutine that was joined is seen a little longer
				require.Empty(t, workingAhead())
				time.Sleep(time.Second)
				require.NoError(t, pf.Start(t.Context()))
				time.Sleep(25 * ms)
				require.Equal(t, turns(1, 10)[5:], some(t, pf.All(t.Context()), -1, ""))
				closes(t, pf)
			})
		})
	}
}

// What goes wrong ahead of the reader is told by the range that comes to it, behind the
// batches before it.
func TestAnErrorBehindStart(t *testing.T) {
	for _, form := range forms {
		t.Run(form.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pf := form.open(t, canary{n: 11, width: 8, read: failing(5)}, 4, loader.Options{Epochs: 1}, prefetch.Options{}, 0)
				for range 2 {
					require.NoError(t, pf.Start(t.Context()))
					time.Sleep(time.Second)
				}
				n := 0
				var failed error
				for _, err := range pf.All(t.Context()) {
					if failed = err; err == nil {
						n++
					}
				}
				require.Equal(t, 1, n)
				var mine *userError
				require.ErrorAs(t, failed, &mine)
				closes(t, pf)
			})
		})
	}
}

// Samples are read under Start's values, and no range's.
func TestStartsContextHasItsValues(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 8, read: func(ctx context.Context, i int) error {
			if v, _ := ctx.Value(key{}).(string); v != "Start's" {
				return errors.New("no value")
			}
			return nil
		}}
		pf := hosts[0].open(t, data, 4, loader.Options{Epochs: 1}, prefetch.Options{}, 0)
		require.NoError(t, pf.Start(context.WithValue(t.Context(), key{}, "Start's")))
		require.Equal(t, turns(1, 5), some(t, pf.All(t.Context()), -1, ""))
		require.NoError(t, pf.Close())
	})
}

// A Close at any time behind Start leaves nothing.
func TestCloseBehindStart(t *testing.T) {
	for after := range 8 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, costs(40, 3*time.Millisecond), adversarial(2*time.Millisecond), 2, plain, prefetch.Options{})
			require.NoError(t, r.pf.Start(t.Context()))
			time.Sleep(time.Duration(after) * time.Millisecond)
			r.close()
			require.ErrorIs(t, r.pf.Start(t.Context()), prefetch.ErrClosed)
		})
	}
}

// Stop ends what works ahead and keeps the place; what was read ahead is read again.
func TestStopEndsWhatWorksAhead(t *testing.T) {
	eachForm(t, 2, func(t *testing.T, pf *prefetch.Prefetcher) {
		require.NoError(t, pf.Stop(), "nothing works ahead")
		for b, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			require.False(t, b.Released())
			require.ErrorIs(t, pf.Stop(), prefetch.ErrBusy)
			b.Release()
			require.True(t, b.Released())
			require.True(t, b.Of(pf))
			require.False(t, b.Of(nil))
			break
		}
		require.NotZero(t, pf.Stats().Loader.Batches)
		before, at := pf.Stats().Loader, pf.State()
		require.NoError(t, pf.Stop())
		synctest.Wait()
		require.Equal(t, before, pf.Stats().Loader, "nothing is read any more")
		require.Equal(t, at, pf.State())
		for b, err := range pf.All(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, 1, b.Position().Batch)
			break
		}
		require.True(t, prefetch.Batch{}.Released())
		require.False(t, prefetch.Batch{}.Of(pf))
		require.False(t, prefetch.Batch{}.Of(nil))
		closes(t, pf)
		require.ErrorIs(t, pf.Stop(), prefetch.ErrClosed)
	})
}
