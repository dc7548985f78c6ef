package prefetch_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// What keeps the addresses of a batch is told before the memory is freed, once, whether
// the batches are back or not; what was cancelled is not told.
func TestBeforeFreeIsCalledFirst(t *testing.T) {
	for _, leased := range []bool{false, true} {
		r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{}, prefetch.Options{})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		g, err := r.compute.Capture(func() error { return r.compute.Memset(b.Field("bytes").View, 0) })
		require.NoError(t, err)
		var order []string
		for _, name := range []string{"a", "graph", "cancelled"} {
			cancel, err := r.pf.BeforeFree(func(context.Context) error {
				order = append(order, name)
				if name == "graph" {
					return g.Close()
				}
				return nil
			})
			require.NoError(t, err)
			if name == "cancelled" {
				cancel()
				cancel()
			}
		}
		if !leased {
			b.Release()
			require.NoError(t, r.pf.Close())
		} else {
			var left *prefetch.CloseError
			require.ErrorAs(t, r.pf.Close(), &left)
			require.NoError(t, left.Err)
			b.Release()
		}
		require.Equal(t, []string{"a", "graph"}, order)
		_, err = r.pf.BeforeFree(func(context.Context) error { return nil })
		require.ErrorIs(t, err, prefetch.ErrClosed)
		require.NoError(t, rd.Close())
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for leases := r.pf.Stats().Leases; leases > 0; leases = r.pf.Stats().Leases {
			runtime.Gosched()
		}
	}
}

// Who does not come to an end in time leaves the memory to the reaper, whose call has no
// limit, and Close says so.
func TestBeforeFreeThatTakesLong(t *testing.T) {
	for name, endsWithContext := range map[string]bool{"and heeds its context": true, "and does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{}, prefetch.Options{CloseTimeout: time.Second})
				var calls atomic.Int32
				_, err := r.pf.BeforeFree(func(ctx context.Context) error {
					calls.Add(1)
					if endsWithContext {
						select {
						case <-time.After(3 * time.Second):
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					}
					time.Sleep(3 * time.Second)
					return nil
				})
				require.NoError(t, err)
				before := time.Now()
				var left *prefetch.CloseError
				require.ErrorAs(t, r.pf.Close(), &left)
				require.Equal(t, 3, left.Slots)
				require.ErrorIs(t, left.Err, context.DeadlineExceeded)
				require.Equal(t, time.Second, time.Since(before))
				require.Positive(t, r.pf.Stats().Pool.Bytes)
				time.Sleep(4 * time.Second)
				if endsWithContext {
					require.EqualValues(t, 2, calls.Load())
				} else {
					require.EqualValues(t, 1, calls.Load())
				}
				r.nothingLeft()
			})
		})
	}
}

// On the host it is the producers' memory that is left.
func TestBeforeFreeOnTheHostThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld, err := loader.New(canary{n: 40, width: 4}, 4, loader.Options{})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{CloseTimeout: time.Second})
		require.NoError(t, err)
		_, err = pf.BeforeFree(func(context.Context) error {
			time.Sleep(3 * time.Second)
			return nil
		})
		require.NoError(t, err)
		var left *prefetch.CloseError
		require.ErrorAs(t, pf.Close(), &left)
		require.True(t, left.HostSlots)
		require.Zero(t, left.Slots)
		require.ErrorIs(t, left.Err, context.DeadlineExceeded)
		require.Positive(t, pf.Stats().Pool.Bytes)
		time.Sleep(4 * time.Second)
		require.Zero(t, pf.Stats().Pool.Bytes)
	})
}

// Any goroutine may ask for it, and cancel.
func TestBeforeFreeFromManyGoroutines(t *testing.T) {
	const goroutines, each = 8, 25
	r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{}, prefetch.Options{})
	var called atomic.Int32
	ask := func() (cancel func()) {
		cancel, err := r.pf.BeforeFree(func(context.Context) error {
			called.Add(1)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return cancel
	}
	all := func(f func()) {
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range each {
					f()
				}
			})
		}
		group.Wait()
	}
	all(func() { ask() })
	cancels := make(chan func(), goroutines*each)
	for range goroutines * each {
		cancels <- ask()
	}
	all(func() { (<-cancels)() })
	r.close()
	require.EqualValues(t, goroutines*each, called.Load())
}

// What goes wrong there is told by Close, and everything is freed all the same.
func TestBeforeFreeThatFails(t *testing.T) {
	own := errors.New("own")
	for name, f := range map[string]func(context.Context) error{
		"error":  func(context.Context) error { return own },
		"panic":  func(context.Context) error { panic(own) },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, canary{n: 40, width: 4}, cpu.Options{}, 4, loader.Options{}, prefetch.Options{})
			_, err := r.pf.BeforeFree(f)
			require.NoError(t, err)
			called := false
			_, err = r.pf.BeforeFree(func(context.Context) error { called = true; return nil })
			require.NoError(t, err)
			err = r.pf.Close()
			switch name {
			case "error":
				require.ErrorIs(t, err, own)
			case "panic":
				var panicked *loader.PanicError
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, own, panicked.Value)
			case "goexit":
				var exited *loader.GoexitError
				require.ErrorAs(t, err, &exited)
			}
			require.True(t, called)
			r.nothingLeft()
			require.NoError(t, r.pf.Close())
		})
	}
}
