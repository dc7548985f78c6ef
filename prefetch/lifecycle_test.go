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

// plain is for batches of two.
var plain = loader.Options{Workers: 2}

func TestNothingRunsBeforeTheFirstBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := false
		data := canary{n: 10, width: 4, read: func(context.Context, int) error { read = true; return nil }}
		r := newRig(t, data, cpu.Options{}, 2, plain, prefetch.Options{})
		synctest.Wait()
		require.False(t, read)
		for _, op := range []devicetest.Op{devicetest.Record, devicetest.Wait, devicetest.CopyH2D, devicetest.Launch, devicetest.SynchronizeEvent, devicetest.EventDone} {
			require.Zero(t, r.tap.Count(op), "%v before the first batch", op)
		}
		r.close()
		require.NoError(t, r.pf.Close(), "Close is idempotent")
	})
}

func TestThousandEpochsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 6, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		for range 3 {
			require.NoError(t, r.epochs(1, 0))
			require.NoError(t, r.pf.Seek(0, 0))
		}
		allocations := r.dev.Usage().Allocations
		for epoch := range 1000 {
			n := 0
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, epoch, b.Position().Epoch)
				n++
			}
			require.Equal(t, 3, n)
		}
		require.Equal(t, allocations, r.dev.Usage().Allocations, "streams, events and memory are made once")
		r.close()
	})
}

func TestThousandAbandonedEpochsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 2000, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		allocations := r.dev.Usage().Allocations
		for i := range 1000 {
			for b, err := range r.pf.Batches(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, i, b.Position().Batch, "each range goes on behind the last")
				break
			}
		}
		require.Equal(t, allocations, r.dev.Usage().Allocations)
		r.close() // and the bubble ends only if no goroutine is left
	})
}

func TestHoldingEverySlotFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{Depth: 3})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 3 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
		}
		_, err = rd.Next(t.Context())
		var lease *prefetch.LeaseError
		require.ErrorAs(t, err, &lease)
		require.ErrorIs(t, err, prefetch.ErrLeases)
		require.Equal(t, 3, lease.Outstanding)
		require.Contains(t, lease.Taken[0], "lifecycle_test.go:", "the place that took it")
		require.Contains(t, err.Error(), "3 leases outstanding")

		clone, err := held[0].Clone()
		require.NoError(t, err)
		var got [3]reading
		for i, b := range held {
			got[i] = r.read(b, 0)
			b.Release()
		}
		next, err := rd.Next(t.Context())
		require.NoError(t, err, "the reader goes on once a slot is released")
		require.Equal(t, 3, next.Position().Batch)
		next.Release()
		kept := make([]byte, clone.Field("bytes").View.Size())
		require.NoError(t, r.compute.CopyD2H(kept, clone.Field("bytes").View))
		require.NoError(t, r.dev.Synchronize(t.Context()))
		for i := range got {
			require.NoError(t, r.verify(got[i]))
		}
		require.Equal(t, got[0].bytes, kept)
		require.NoError(t, clone.Close())
		require.NoError(t, rd.Close())
		r.close()
	})
}

// A batch that came with others and is back counts no more: the user holds the slot once he
// has the rest of it.
func TestHoldingWhatIsLeftOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 4}
		data.read = func(context.Context, int) error { time.Sleep(time.Millisecond); return nil }
		r := newRig(t, data, cpu.Options{}, 2, loader.Options{Workers: 1}, prefetch.Options{Depth: 1, BatchesPerCopy: 2, Memory: prefetch.Memory{HostSlots: 4}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		next := func() prefetch.Batch {
			t.Helper()
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			return b
		}
		alone := next()
		time.Sleep(time.Minute) // one more waits alone for the slot, and those behind it are ready
		alone.Release()
		next().Release()
		next().Release()
		uploads := r.pf.Stats().Uploads
		second := next()
		require.Equal(t, uploads, r.pf.Stats().Uploads, "it came with the one before")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = rd.Next(ctx)
		require.ErrorIs(t, err, prefetch.ErrLeases)
		second.Release()
		next().Release()
		require.NoError(t, rd.Close())
		r.close()
	})
}

func TestTheLastBatchesMayAllBeHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 6, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{Depth: 3})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		var held []prefetch.Batch
		for range 3 {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			held = append(held, b)
		}
		for range 3 {
			_, err = rd.Next(t.Context())
			require.ErrorIs(t, err, prefetch.ErrEpochEnd)
		}
		for _, b := range held {
			b.Release()
		}
		require.NoError(t, rd.Close())
		r.close()
	})
}

func TestUseAfterReleasePanicsWithTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 6, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{Depth: 1})
		var stale prefetch.Batch
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			if b.Position().Batch == 1 {
				require.PanicsWithValue(t, recovered(func() { stale.Len() }), func() { stale.Len() })
				require.Contains(t, recovered(func() { stale.Release() }), "Batch.Release after its release")
				require.Contains(t, recovered(func() { stale.Field("bytes") }), "leased (epoch 0, batch 0)")
			}
			stale = b
			b.Release() // the range's own release then finds nothing to do
			require.Contains(t, recovered(b.Release), "after its release")
		}
		require.Contains(t, recovered(func() { prefetch.Batch{}.Len() }), "zero Batch")
		require.Contains(t, recovered(prefetch.Batch{}.Release), "zero Batch")
		r.close()
	})
}

func recovered(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return "no panic"
}

func TestALeaseOutlivesClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, adversarial(time.Millisecond), 2, plain, prefetch.Options{})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		err = r.pf.Close()
		var left *prefetch.CloseError
		require.ErrorAs(t, err, &left)
		require.Len(t, left.Leased, 1)
		require.Contains(t, left.Leased[0], "epoch 0, batch 0, taken at ")
		got := r.read(b, time.Millisecond) // still legal
		b.Release()
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.NoError(t, r.verify(got))
		synctest.Wait() // the reaper has seen the event
		r.nothingLeft()
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrClosed)
		require.NoError(t, rd.Close())
		_, err = r.pf.Open(t.Context())
		require.ErrorIs(t, err, prefetch.ErrClosed)
	})
}

func TestCloseWaitsNoLongerThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, adversarial(time.Millisecond), 2, plain, prefetch.Options{CloseTimeout: time.Second})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, r.compute.Launch(cpu.Busy(time.Minute)))
			if b.Position().Batch == 1 {
				break
			}
		}
		start := time.Now()
		err := r.pf.Close()
		require.Equal(t, time.Second, time.Since(start))
		var left *prefetch.CloseError
		require.ErrorAs(t, err, &left)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotZero(t, r.dev.Usage().DeviceBytes, "nothing is freed while the device works on it")
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		r.nothingLeft() // the reaper has freed it
	})
}

func TestCloseWhileCopiesAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, adversarial(100*time.Millisecond), 2, plain, prefetch.Options{})
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			_ = b
			break
		}
		require.NoError(t, r.pf.Close(), "Close waits for the copies before it frees their memory")
		r.nothingLeft()
	})
}

func TestCloseEndsARangeOfAnotherGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 20, width: 4, read: func(ctx context.Context, i int) error {
			if i < 4 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		r := newRig(t, data, cpu.Options{}, 2, plain, prefetch.Options{})
		done := make(chan error)
		go func() {
			var last error
			for _, err := range r.pf.Batches(t.Context()) {
				last = err
			}
			done <- last
		}()
		synctest.Wait()
		require.NoError(t, r.pf.Close())
		require.ErrorIs(t, <-done, prefetch.ErrClosed)
		r.nothingLeft()
	})
}

func TestCloseInTheLoopsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		var errs []error
		for _, err := range r.pf.Batches(t.Context()) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			var left *prefetch.CloseError
			require.ErrorAs(t, r.pf.Close(), &left)
		}
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], prefetch.ErrClosed)
		synctest.Wait()
		r.nothingLeft()
	})
}

func TestOneRangeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 4}, cpu.Options{}, 2, plain, prefetch.Options{})
		for _, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			_, err = r.pf.Open(t.Context())
			require.ErrorIs(t, err, prefetch.ErrBusy)
			require.ErrorIs(t, r.pf.Seek(0, 0), prefetch.ErrBusy)
			require.ErrorIs(t, r.pf.Restore(r.pf.State()), prefetch.ErrBusy)
			for _, err := range r.pf.Batches(t.Context()) {
				require.ErrorIs(t, err, prefetch.ErrBusy)
			}
			break
		}
		r.close()
	})
}

func TestRangingBehindTheLastEpochYieldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lo := plain
		lo.Epochs = 2
		r := newRig(t, canary{n: 6, width: 4}, cpu.Options{}, 2, lo, prefetch.Options{})
		require.NoError(t, r.epochs(2, 0))
		for range 3 {
			for range r.pf.Batches(t.Context()) {
				t.Fatal("a batch behind the last epoch")
			}
		}
		require.Equal(t, 2, r.pf.Epoch())
		r.close()
	})
}

// Batches that travel together go to several compute streams: one of them that is
// used elsewhere too leaves the others room.
func TestUsedOnLeavesTheComputeStreamsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 16}, adversarial(2*time.Millisecond), 2, plain,
			prefetch.Options{BatchesPerCopy: 4, Streams: prefetch.Streams{Compute: 2, RoundRobin: true, Max: 3}})
		var others []*device.Stream
		for range 2 {
			s, err := r.dev.NewStream(device.StreamOptions{Name: "other"})
			require.NoError(t, err)
			others = append(others, s)
		}
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.UsedOn(others[0]))
			require.ErrorContains(t, b.UsedOn(others[1]), "Streams.Max")
			all = append(all, r.readOn(b, others[0], time.Millisecond))
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.Len(t, all, 20)
		for _, got := range all {
			require.NoError(t, r.verify(got))
		}
		require.NoError(t, errors.Join(r.pf.Close(), others[0].Close(), others[1].Close()))
		r.nothingLeft()
	})
}

func TestUsedOnOrdersAnotherStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 40, width: 16}, adversarial(2*time.Millisecond), 2, plain, prefetch.Options{Depth: 2, Streams: prefetch.Streams{Max: 2}})
		other, err := r.dev.NewStream(device.StreamOptions{Name: "other"})
		require.NoError(t, err)
		third, err := r.dev.NewStream(device.StreamOptions{Name: "third"})
		require.NoError(t, err)
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.UsedOn(other))
			require.NoError(t, b.UsedOn(other), "a second time changes nothing")
			require.NoError(t, b.UsedOn(r.compute))
			require.ErrorContains(t, b.UsedOn(third), "Streams.Max")
			all = append(all, r.readOn(b, other, 7*time.Millisecond))
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.Len(t, all, 20)
		for _, got := range all {
			require.NoError(t, r.verify(got))
		}
		require.NoError(t, errors.Join(r.pf.Close(), other.Close(), third.Close()))
		r.nothingLeft()
	})
}
