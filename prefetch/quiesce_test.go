package prefetch_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// At rest the Prefetcher makes no driver call and reads no sample; then it goes on
// with the very next batch.
func TestQuiescedNothingCallsTheDevice(t *testing.T) {
	for _, per := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var reads atomic.Int64
			data := canary{n: 60, width: 8, read: func(context.Context, int) error { reads.Add(1); return nil }}
			r := newRig(t, data, adversarial(time.Millisecond), 3, loader.Options{Shuffle: true, Workers: 1, Epochs: 2},
				prefetch.Options{BatchesPerCopy: per, Transform: passOn(cpuSpin, time.Millisecond, data)})
			var all []reading
			for r.pf.Epoch() < 2 {
				for b, err := range r.pf.Batches(t.Context()) {
					require.NoError(t, err)
					all = append(all, r.read(b, 2*time.Millisecond))
					if len(all)%3 == 0 {
						require.NoError(t, r.pf.Quiesce(t.Context()))
						calls, before := r.tap.Calls(), reads.Load()
						time.Sleep(time.Second)
						require.Equal(t, calls, r.tap.Calls())
						require.Equal(t, before, reads.Load())
					}
				}
			}
			require.Len(t, all, 40)
			require.NoError(t, r.dev.Synchronize(t.Context()))
			for i, got := range all {
				require.Equal(t, i%20, got.at.Batch)
				require.NoError(t, r.verify(got))
			}
			r.close()
			require.ErrorIs(t, r.pf.Quiesce(t.Context()), prefetch.ErrClosed)
		})
	}
}

// Before anything has begun there is nothing to bring to rest.
func TestQuiesceBeforeTheFirstBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, cpu.Options{}, 2, plain, prefetch.Options{Streams: prefetch.Streams{Compute: 2}})
		require.NoError(t, r.pf.Quiesce(t.Context()))
		require.NoError(t, r.epochs(1, 0))
		r.close()
	})
}

func TestQuiesceIsBusyDuringAMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
		for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(0))) {
			require.NoError(t, err)
			require.ErrorIs(t, r.pf.Quiesce(t.Context()), prefetch.ErrBusy)
		}
		require.NoError(t, r.pf.Quiesce(t.Context()), "also where nothing runs")
		r.close()
	})
}

// A Quiesce that could not stop the uploader says what is stuck, and changes nothing: the
// range that it is called from goes on with the batch that is due.
func TestAQuiesceThatFailsSkipsNothing(t *testing.T) {
	for _, per := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			data, stuck := canary{n: 16, width: 8}, true
			pass := passOn(cpuSpin, 0, data)
			apply := pass.Apply
			pass.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
				if in.Position().Batch == 5 && stuck {
					stuck = false
					time.Sleep(10 * time.Second)
				}
				return apply(s, out, in)
			}
			r := newRig(t, data, adversarial(time.Millisecond),
				1, loader.Options{Workers: 1, Epochs: 1, GracePeriod: time.Second},
				prefetch.Options{Depth: 8, BatchesPerCopy: per, Transform: pass, Memory: prefetch.Memory{HostSlots: 8 * per}})
			var all []reading
			report := new(loader.StuckError)
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				all = append(all, r.read(b, 0))
				if len(all) == 2 {
					time.Sleep(time.Second)
					require.ErrorAs(t, r.pf.Quiesce(t.Context()), &report)
				}
			}
			require.Equal(t, 5, report.Batch)
			require.Len(t, all, 16)
			require.NoError(t, r.dev.Synchronize(t.Context()))
			for i, got := range all {
				require.Equal(t, i, got.at.Batch)
				require.NoError(t, r.verify(got))
			}
			r.close()
		})
	}
}

func TestQuiesceBesideACloseIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{CloseTimeout: time.Minute})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			r.read(b, 10*time.Second)
			break
		}
		done := make(chan error)
		go func() { done <- r.pf.Close() }()
		synctest.Wait()
		require.ErrorIs(t, r.pf.Quiesce(t.Context()), prefetch.ErrClosed)
		require.NoError(t, <-done)
		r.close()
	})
}

// What a Map that was left has under way ends before Quiesce returns, also where the Map
// itself did not wait for it.
func TestQuiesceWaitsForWhatAMapHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{CloseTimeout: 3 * time.Millisecond})
		for _, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(10*time.Millisecond))) {
			require.NoError(t, err)
			break
		}
		reader, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := reader.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, r.pf.Quiesce(t.Context()))
		calls := r.tap.Calls()
		time.Sleep(time.Second)
		require.Equal(t, calls, r.tap.Calls())
		b.Release()
		require.NoError(t, reader.Close())
		r.close()
	})
}

// A Seek that fails has not moved the cursor, and the next one succeeds.
func TestASeekThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		data := canary{n: 8, width: 8, read: func(context.Context, int) error {
			if reads.Add(1) == 9 { // the look-ahead into the next epoch
				time.Sleep(10 * time.Second)
			}
			return nil
		}}
		r := newRig(t, data, adversarial(time.Millisecond),
			2, loader.Options{Workers: 1, Epochs: 3, GracePeriod: time.Second}, prefetch.Options{Depth: 1, Memory: prefetch.Memory{HostSlots: 1}})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			r.read(b, 0)
		}
		time.Sleep(time.Second)
		require.Error(t, r.pf.Seek(0, 4))
		require.Equal(t, 1, r.pf.Epoch())
		require.Zero(t, r.pf.State().Position)
		time.Sleep(20 * time.Second)
		require.NoError(t, r.pf.Seek(0, 4))
		n := 0
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.Equal(t, 2+n, b.Position().Batch)
			n++
		}
		require.Equal(t, 2, n)
		r.close()
	})
}

// Where there is no such place, what was read ahead for the present one is kept.
func TestASeekToNowhereGivesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, count := costly(40, time.Millisecond)
		r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Workers: 1, Epochs: 1}, prefetch.Options{})
		n := 0
		for range 2 {
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, n, b.Position().Batch)
				if n++; n == 5 {
					break
				}
			}
			time.Sleep(time.Second) // more are read
			require.Error(t, r.pf.Seek(0, -1))
			require.Error(t, r.pf.Seek(7, 0))
		}
		require.Equal(t, 20, n)
		count.exactly(t, 1)
		r.close()
	})
}

// A Quiesce of another goroutine, beside a range: the range waits for it and goes on.
func TestQuiesceBesideARangeDisturbsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, adversarial(5*time.Millisecond), 2, plain, prefetch.Options{})
		stop, quiet := make(chan struct{}), make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					quiet <- n
					return
				case <-time.After(3 * time.Millisecond):
				}
				if err := r.pf.Quiesce(context.Background()); err == nil {
					n++
				} else if !errors.Is(err, prefetch.ErrBusy) {
					t.Error(err)
				}
			}
		}()
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			all = append(all, r.read(b, 2*time.Millisecond))
			time.Sleep(4 * time.Millisecond)
		}
		close(stop)
		require.NotZero(t, <-quiet)
		require.Len(t, all, 20)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for i, got := range all {
			require.Equal(t, i, got.at.Batch)
			require.NoError(t, r.verify(got))
		}
		r.close()
	})
}

// What Close reports as held by a Map's step says so: the user can't release it.
func TestCloseInAStepNamesTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 8}, cpu.Options{}, 2, plain, prefetch.Options{})
		closed := make(chan error, 1)
		step := func(b prefetch.Batch, out prefetch.Fields) error {
			if b.Position().Batch == 2 {
				closed <- r.pf.Close()
			}
			return b.Stream().CopyD2D(out.Field("bytes").View, b.Field("bytes").View)
		}
		out := prefetch.Output{Fields: r.data.Fields()[1:]}
		for _, err := range r.pf.Map(t.Context(), out, step) {
			if err != nil {
				require.ErrorIs(t, err, prefetch.ErrClosed)
			}
		}
		var left *prefetch.CloseError
		require.ErrorAs(t, <-closed, &left)
		require.Len(t, left.Leased, 1)
		require.Contains(t, left.Leased[0], "in the step of a Map")
		synctest.Wait()
		r.nothingLeft()
	})
}

// A Next beside Quiesces of another goroutine waits for them, whenever they begin and end.
func TestNextIsNeverBusyForAQuiesce(t *testing.T) {
	r := newRig(t, canary{n: 500, width: 4}, cpu.Options{}, 1, plain, prefetch.Options{})
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	over := make(chan struct{})
	var quiescing sync.WaitGroup
	quiescing.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := r.pf.Quiesce(t.Context()); err != nil && !errors.Is(err, prefetch.ErrBusy) {
				t.Error(err)
			}
		}
	})
	for range 500 {
		b, err := rd.Next(t.Context())
		if err != nil {
			t.Error(err)
			break
		}
		b.Release()
	}
	close(over)
	quiescing.Wait()
	require.NoError(t, rd.Close())
	r.close()
}
