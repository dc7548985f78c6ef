package pinnedpool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/pinnedpool"
)

func TestABufferComesBackWhenItsCopyIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(10*time.Millisecond), 2, slotBytes, pinnedpool.Options{})
		start := time.Now()
		first, second := r.get(), r.get()
		require.NotEqual(t, first.ID(), second.ID())
		r.upload(first, 1)
		r.upload(second, 2)
		require.Equal(t, 2, r.pool.Stats().InFlight)

		require.Same(t, first, r.get(), "in the order of the copies")
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		r.pool.Put(first)
		require.Same(t, first, r.get(), "Put needs no copy")
		require.Equal(t, 10*time.Millisecond, time.Since(start))
		require.Same(t, second, r.get())
		require.Equal(t, 20*time.Millisecond, time.Since(start))

		s := r.pool.Stats()
		require.EqualValues(t, 5, s.Gets)
		require.EqualValues(t, 2, s.Waits)
		require.Equal(t, 20*time.Millisecond, s.WaitTime)
		require.Zero(t, s.Free+s.InFlight+s.Quarantined)
		r.pool.Put(first)
		r.pool.Put(second)
		r.close()
	})
}

// One that is refilled too soon would be a race that the device reports.
func TestTheRingGoesRoundForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{})
		allocations := r.dev.Usage().Allocations
		for lap := range 1000 {
			r.upload(r.get(), byte(lap))
		}
		require.NoError(t, r.pool.Drain(t.Context()))
		require.Equal(t, allocations, r.dev.Usage().Allocations)
		require.Equal(t, 3, r.pool.Stats().Free)
		r.close()
	})
}

// All that are done are free on the first waking, however many.
func TestOneWakingFreesAllThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 8, slotBytes, pinnedpool.Options{})
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Second)))
		for range 8 {
			r.upload(r.get(), 1)
		}
		synctest.Wait()
		require.Zero(t, r.pool.Stats().Free)
		require.NoError(t, r.pool.Drain(t.Context()))
		require.Equal(t, 8, r.pool.Stats().Free)
		r.close()
	})
}

// A bubble ends only when its goroutines have: a pool without a copy in flight starts
// none, and Close ends the one of the others.
func TestAPoolHasAGoroutineFromItsFirstCopyUntilClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, slotBytes, pinnedpool.Options{})
		r.pool.Put(r.get())
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, slotBytes, pinnedpool.Options{})
		for range 3 {
			r.upload(r.get(), 1)
			require.NoError(t, r.pool.Drain(t.Context()))
		}
		r.upload(r.get(), 1)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		require.Equal(t, 2, r.pool.Stats().Free)
		r.close()
	})
}

// With nothing in flight the pool calls nothing: its goroutine is parked.
func TestAnIdlePoolCallsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, slotBytes, pinnedpool.Options{})
		r.upload(r.get(), 1)
		require.NoError(t, r.pool.Drain(t.Context()))
		synchronized := r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Delay: time.Nanosecond})
		asked := r.tap.Arm(devicetest.Rule{Op: devicetest.EventDone, Delay: time.Nanosecond})
		time.Sleep(time.Hour)
		require.Zero(t, synchronized.Matched()+asked.Matched())
		r.close()
	})
}

func TestGetWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
		held := r.get()
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		start := time.Now()
		_, err := r.pool.Get(ctx)
		require.ErrorIs(t, err, why)
		require.Equal(t, time.Second, time.Since(start))
		r.pool.Put(held)
		require.Same(t, held, r.get(), "giving up has taken nothing")
		r.pool.Put(held)
		r.close()
	})
}

func TestMovesThatAreNoneOfTheCallersPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, slotBytes, pinnedpool.Options{})
		b := r.get()
		r.pool.Put(b)
		require.PanicsWithValue(t, "pinnedpool: buffer 0: put while free", func() { r.pool.Put(b) })
		require.PanicsWithValue(t, "pinnedpool: buffer 0: send while free", func() { r.pool.PutAfter(b) })
		require.PanicsWithValue(t, "pinnedpool: buffer 0: quarantine while free", func() { r.pool.Quarantine(b) })
		b = r.get()
		r.upload(b, 1)
		require.PanicsWithValue(t, "pinnedpool: buffer 1: put while in flight", func() { r.pool.Put(b) })
		require.PanicsWithValue(t, "pinnedpool: buffer 1: doubt while in flight", func() { r.pool.Doubt(b) }, "that is the recycler's to say")
		require.PanicsWithValue(t, "pinnedpool: buffer 0: doubt while free", func() { r.pool.Doubt(r.pool.Buffer(0)) })
		r.close()
	})
}

func TestBuffersWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, 0, pinnedpool.Options{BudgetBytes: 1})
		b := r.get()
		require.Empty(t, b.Bytes())
		v, err := b.View()
		require.NoError(t, err)
		require.Zero(t, v.Size())
		require.NoError(t, r.copies.Record(b.Copied()))
		r.pool.PutAfter(b)
		require.NoError(t, r.pool.Drain(t.Context()))
		require.Equal(t, pinnedpool.Stats{Slots: 2, Free: 2, Gets: 1}, r.pool.Stats())
		r.close()
	})
}
