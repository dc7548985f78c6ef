package prefetch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Closes that begin during another end with it, with its error: who closes the device
// next does so with nothing under way.
func TestClosesAtOnceEndTogether(t *testing.T) {
	boom := errors.New("boom")
	for _, fail := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, canary{n: 8, width: 4}, adversarial(time.Millisecond), 1, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{})
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.NoError(t, b.Stream().Launch(cpu.Busy(100*time.Millisecond)))
			}
			if fail {
				r.tap.Arm(devicetest.Rule{Op: devicetest.FreeEvent, Event: "consumed", Nth: 2, Err: boom})
			}
			start := time.Now()
			var wg sync.WaitGroup
			errs, ends := make([]error, 3), make([]time.Duration, 3)
			for i := range errs {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					errs[i] = r.pf.Close()
					ends[i] = time.Since(start)
				})
			}
			wg.Wait()
			for i := range errs {
				require.Equal(t, ends[0], ends[i])
				require.Equal(t, errs[0], errs[i])
				if fail {
					require.ErrorIs(t, errs[i], boom)
				} else {
					require.NoError(t, errs[i])
				}
			}
			require.Greater(t, ends[0], 200*time.Millisecond)
			if !fail {
				r.nothingLeft()
			}
			require.NoError(t, r.pf.Close(), "there is nothing left to say")
		})
	}
}

// A Reader may be closed from anywhere: a Next that waits ends, and what is not read
// comes with the next Reader.
func TestClosingAReaderWakesItsNext(t *testing.T) {
	for _, form := range forms {
		for _, held := range []int{0, 3} { // with all slots held it is WaitNext that waits
			synctest.Test(t, func(t *testing.T) {
				data := canary{n: 20, width: 4, read: func(ctx context.Context, i int) error {
					if i >= 3 && held == 0 {
						select {
						case <-time.After(time.Hour):
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					return nil
				}}
				pf := form.open(t, data, 1, loader.Options{Workers: 1}, prefetch.Options{}, 0)
				rd, err := pf.Open(t.Context())
				require.NoError(t, err)
				var leases []prefetch.Batch
				for range 3 {
					b, err := rd.WaitNext(t.Context())
					require.NoError(t, err)
					if leases = append(leases, b); held == 0 {
						b.Release()
					}
				}
				var wg sync.WaitGroup
				start := time.Now()
				for range 3 {
					wg.Go(func() {
						time.Sleep(time.Second)
						if err := rd.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				_, err = rd.WaitNext(t.Context())
				require.ErrorIs(t, err, prefetch.ErrClosed)
				require.Equal(t, time.Second, time.Since(start))
				wg.Wait()
				_, err = rd.Next(t.Context())
				require.ErrorIs(t, err, prefetch.ErrClosed)
				require.EqualValues(t, 3, pf.State().Position)
				if held > 0 {
					for _, b := range leases {
						b.Release()
					}
					n := 3
					for b, err := range pf.Batches(t.Context()) {
						require.NoError(t, err)
						require.Equal(t, n, b.Position().Batch)
						n++
					}
					require.Equal(t, 20, n)
				}
				require.NoError(t, pf.Close())
			})
		}
	}
}
