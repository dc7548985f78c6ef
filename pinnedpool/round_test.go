package pinnedpool_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/pinnedpool"
)

func TestABufferComesBackWhenItsCopyIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(10*time.Millisecond), pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
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
		r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 3, SlotBytes: slotBytes})
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
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, pinnedpool.Options{Slots: 8, SlotBytes: slotBytes})
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

// A bubble ends only when its goroutines have: here they end before Close.
func TestAnIdlePoolHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
		for range 3 {
			r.upload(r.get(), 1)
			require.NoError(t, r.pool.Drain(t.Context()))
		}
		b := r.get()
		r.upload(b, 1)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		synctest.Wait()
		require.Equal(t, 2, r.pool.Stats().Free)
	})
}

func TestGetWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, pinnedpool.Options{Slots: 1, SlotBytes: slotBytes})
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
		r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
		b := r.get()
		r.pool.Put(b)
		require.PanicsWithValue(t, "pinnedpool: buffer 0: held -> free while free", func() { r.pool.Put(b) })
		require.PanicsWithValue(t, "pinnedpool: buffer 0: held -> in flight while free", func() { r.pool.PutAfter(b) })
		require.PanicsWithValue(t, "pinnedpool: buffer 0: held -> quarantined while free", func() { r.pool.Quarantine(b) })
		b = r.get()
		r.upload(b, 1)
		require.PanicsWithValue(t, "pinnedpool: buffer 1: held -> free while in flight", func() { r.pool.Put(b) })
		r.close()
	})
}

func TestBuffersWithoutMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 2, BudgetBytes: 1})
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
