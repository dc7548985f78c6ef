package prefetch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Close keeps its limit also while another goroutine brings the pipeline to rest, which
// then ends with ErrClosed.
func TestCloseDoesNotWaitForAQuiesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 100, width: 4}, cpu.Options{Model: &cpu.Model{}}, 2, loader.Options{Workers: 1, GracePeriod: time.Second},
			prefetch.Options{Depth: 1, CloseTimeout: time.Second})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.Stream().Launch(cpu.Busy(time.Hour)))
			break
		}
		time.Sleep(time.Millisecond) // the next copy waits behind the kernel
		quiesced := make(chan error)
		go func() { quiesced <- r.pf.Quiesce(context.Background()) }()
		time.Sleep(time.Millisecond)
		start := time.Now()
		var left *prefetch.CloseError
		closed := make(chan error, 1)
		go func() { closed <- r.pf.Close() }()
		require.ErrorIs(t, <-quiesced, prefetch.ErrClosed)
		require.ErrorAs(t, <-closed, &left)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		r.nothingLeft()
	})
}

// Only time for which somebody waits in Next counts for StallTimeout.
func TestNothingStallsWhileNobodyWaits(t *testing.T) {
	for _, start := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 40, width: 8, read: func(_ context.Context, i int) error {
				if i == 12 {
					time.Sleep(5 * time.Second)
				}
				return nil
			}}
			ld, err := loader.New(data, 2, loader.Options{Workers: 2, Epochs: 1, StallTimeout: time.Second})
			require.NoError(t, err)
			pf, err := prefetch.NewHost(ld, prefetch.Options{})
			require.NoError(t, err)
			n := 0
			if start {
				require.NoError(t, pf.Start(t.Context()))
				time.Sleep(time.Minute)
			}
			var failed error
			for _, err := range pf.All(t.Context()) {
				if failed = err; err == nil {
					n++
				}
				if n == 1 && !start {
					time.Sleep(time.Minute)
				}
			}
			require.NoError(t, failed)
			require.Equal(t, 20, n)
			require.NoError(t, pf.Close())
		})
	}
	synctest.Test(t, func(t *testing.T) { // and else it does, from the moment at which somebody waits
		data := canary{n: 40, width: 8, read: func(_ context.Context, i int) error {
			if i == 12 {
				time.Sleep(time.Hour)
			}
			return nil
		}}
		ld, err := loader.New(data, 2, loader.Options{Workers: 2, Epochs: 1, StallTimeout: time.Second})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		require.NoError(t, pf.Start(t.Context()))
		time.Sleep(time.Minute)
		began := time.Now()
		var failed error
		for _, failed = range pf.All(t.Context()) {
		}
		var stall *loader.StallError
		require.ErrorAs(t, failed, &stall)
		require.Equal(t, time.Second, stall.Age)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		time.Sleep(2 * time.Hour)
		_ = pf.Close()
	})
}

// A Seek to where the cursor stands changes nothing, whatever was replaced in passes before.
func TestSeekToTheCursorKeepsTheCountOfSubstitutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 40, width: 4, read: func(_ context.Context, i int) error {
			if i == 5 || i == 9 {
				return errors.New("bad")
			}
			return nil
		}}
		ld, err := loader.New(data, 4, loader.Options{OnError: loader.Substitute, MaxSubstituted: 1, Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.NewHost(ld, prefetch.Options{})
		require.NoError(t, err)
		take := func(n int) (failed error) {
			for _, err := range pf.Batches(t.Context()) {
				if err != nil {
					return err
				}
				if n--; n == 0 {
					break
				}
			}
			return nil
		}
		require.NoError(t, take(2))
		require.NoError(t, pf.Seek(0, 2))
		require.NoError(t, take(1))
		before := pf.State()
		require.Equal(t, 1, before.Substituted)
		require.NoError(t, pf.Seek(0, 6))
		require.Equal(t, before, pf.State())
		var one *loader.SubstituteError
		require.ErrorAs(t, take(10), &one, "sample 9 is one too many")
		require.NoError(t, pf.Close())
	})
}

// A Clone that fails behind a long step gives its memory back when the step has ended.
func TestAFailedCloneLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 100, width: 4}, cpu.Options{Model: &cpu.Model{}}, 2, loader.Options{Workers: 1}, prefetch.Options{CloseTimeout: time.Second})
		boom := errors.New("boom")
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.Stream().Launch(cpu.Busy(10*time.Second)))
			r.tap.Arm(devicetest.Rule{Op: devicetest.CopyD2D, Nth: 2, Err: boom})
			_, err = b.Clone()
			require.ErrorIs(t, err, boom)
			break
		}
		r.tap.Disarm()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		r.close()
	})
}

// A Reader that is closed says so, and disturbs nobody, while another range reads.
func TestAClosedReaderStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 4, read: func(context.Context, int) error { time.Sleep(time.Second); return nil }}
		r := newRig(t, data, cpu.Options{}, 2, plain, prefetch.Options{})
		old, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, old.Close())
		done := make(chan int)
		go func() {
			n := 0
			for _, err := range r.pf.Batches(context.Background()) {
				if err == nil {
					n++
				}
			}
			done <- n
		}()
		for range 50 {
			_, err := old.Next(t.Context())
			require.ErrorIs(t, err, prefetch.ErrClosed)
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 10, <-done)
		r.close()
	})
}

// A Map over a source whose only sample fails comes to the epoch's end all the same.
func TestAMapOfNothingComesToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{})
		require.NoError(t, err)
		compute, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		data := canary{n: 1, width: 4}
		ld, err := loader.NewIterable(loader.FromSeq(data.Fields(), func(yield func(int, error) bool) { yield(0, nil) },
			func(context.Context, int, *loader.Row) error { return errors.New("bad") }), 1, loader.Options{Workers: 1, Epochs: 1})
		require.NoError(t, err)
		pf, err := prefetch.New(compute, ld, prefetch.Options{})
		require.NoError(t, err)
		step := func(prefetch.Batch, prefetch.Fields) error { return nil }
		for range 3 {
			for range pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, step) {
			}
		}
		require.Equal(t, 1, pf.Epoch())
		require.NoError(t, pf.Close())
		require.NoError(t, errors.Join(compute.Close(), dev.Close()))
	})
}
