package pinnedpool_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/pinnedpool"
)

// doubt submits a copy out of b whose event can't be recorded.
func (r *rig) doubt(b *pinnedpool.Buffer) {
	r.t.Helper()
	clear(b.Bytes())
	require.NoError(r.t, r.copies.CopyH2D(r.target.View(), b.Bytes()))
	r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "copied", Nth: 1, Err: errBoom})
	require.ErrorIs(r.t, r.copies.Record(b.Copied()), errBoom)
	r.tap.Disarm()
	r.pool.Doubt(b)
}

// What is in doubt is nobody's until Recover; the rest of the pool goes on as if it were
// not there.
func TestWhatIsInDoubtWaitsForRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{})
		doubtful := r.get()
		r.doubt(doubtful)
		require.Equal(t, 1, r.pool.Doubtful())
		require.NoError(t, r.pool.Failed(), "the device is well")
		for lap := range 10 {
			b := r.get()
			require.NotSame(t, doubtful, b)
			r.upload(b, byte(lap))
		}
		require.NoError(t, r.pool.Drain(t.Context()), "no event tells the end of its copies")
		require.Equal(t, 2, r.pool.Stats().Free)
		require.Zero(t, r.pool.Stats().InFlight)

		require.NoError(t, r.copies.Synchronize(t.Context()))
		start := time.Now()
		r.upload(r.get(), 1)
		r.pool.Recover()
		require.Zero(t, r.pool.Doubtful())
		require.Zero(t, time.Since(start), "a healthy pool waits for nothing")
		require.Equal(t, 1, r.pool.Stats().InFlight, "and what is in flight stays there")
		require.Equal(t, 2, r.pool.Stats().Free)
		r.pool.Recover()
		require.Equal(t, 2, r.pool.Stats().Free)
		r.close()
	})
}

func TestRecoverWakesWhoWaitsForWhatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 1, slotBytes, pinnedpool.Options{})
		r.doubt(r.get())
		got := make(chan *pinnedpool.Buffer)
		go func() { got <- r.get() }()
		synctest.Wait()
		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Recover()
		r.pool.Put(<-got)
		r.close()
	})
}

// A fault of the device and a copy that could not be submitted whole: one Recover.
func TestRecoverFreesAllThatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 4, slotBytes, pinnedpool.Options{Together: 2})
		r.doubt(r.get())
		r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "copied", Nth: 1, Err: errBoom})
		r.uploadTogether(r.get(), r.get())
		synctest.Wait()
		require.Equal(t, 3, r.pool.Doubtful())
		require.ErrorIs(t, r.pool.Failed(), errBoom)
		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Recover()
		require.NoError(t, r.pool.Failed())
		require.Zero(t, r.pool.Doubtful())
		require.Equal(t, 4, r.pool.Stats().Free)
		for range 10 {
			r.uploadTogether(r.get(), r.get(), r.get())
		}
		r.close()
	})
}

// Close leaves what is in doubt its memory, and takes it after Recover.
func TestCloseLeavesWhatIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{})
		r.doubt(r.get())
		require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 3 buffers are not back")
		require.EqualValues(t, 1, r.dev.Usage().HostBuffers)
		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Recover()
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed, "Recover opens nothing")
		r.close()
	})
}

// Only what is in quarantine comes back from it, once; nothing else is touched.
func TestReadmitTouchesOnlyWhatIsInQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 5, slotBytes, pinnedpool.Options{})
		held, inFlight, doubtful, quarantined := r.get(), r.get(), r.get(), r.get()
		free := r.pool.Buffer(4)
		r.upload(inFlight, 1)
		r.doubt(doubtful)
		r.pool.Quarantine(quarantined)
		before := r.pool.Stats()
		for _, b := range []*pinnedpool.Buffer{free, held, inFlight, doubtful} {
			require.False(t, r.pool.Readmit(b))
		}
		require.Equal(t, before, r.pool.Stats())
		require.Equal(t, 1, r.pool.Doubtful())

		require.True(t, r.pool.Readmit(quarantined))
		require.False(t, r.pool.Readmit(quarantined), "its caller holds it")
		require.Zero(t, r.pool.Stats().Quarantined)
		r.pool.Put(quarantined)
		require.False(t, r.pool.Readmit(quarantined))
		r.pool.Put(held)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		r.pool.Recover()
		r.close()
	})
}

func TestOneOfManyReadmits(t *testing.T) {
	r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
	for range 100 {
		b := r.get()
		r.pool.Quarantine(b)
		var readmitted atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if r.pool.Readmit(b) {
					readmitted.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, readmitted.Load())
		r.pool.Put(b)
	}
	r.close()
}

// The last buffer's quarantine may end while it begins: the pool is not exhausted then.
func TestAnExhaustedPoolHasABufferAgain(t *testing.T) {
	r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
	for range 200 {
		b := r.get()
		var both sync.WaitGroup
		both.Go(func() { r.pool.Quarantine(b) })
		both.Go(func() {
			for !r.pool.Readmit(b) {
				// until the other has begun
			}
		})
		both.Wait()
		r.pool.Put(b)
	}
	r.close()
}

// Who asks once a buffer is held again waits for it.
func TestReadmitMakesAnExhaustedPoolWorthWaitingFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
		b := r.get()
		r.pool.Quarantine(b)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrExhausted)
		require.True(t, r.pool.Readmit(b))
		got := make(chan *pinnedpool.Buffer)
		go func() { got <- r.get() }()
		synctest.Wait()
		r.pool.Put(b)
		r.pool.Put(<-got)
		r.close()
	})
}

// A quarantine's end doesn't open a closed pool.
func TestAReadmittedBufferOfAClosedPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 2, slotBytes, pinnedpool.Options{})
		a, b := r.get(), r.get()
		r.pool.Quarantine(a)
		r.pool.Quarantine(b)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrExhausted)
		require.ErrorContains(t, r.pool.Close(t.Context()), "2 of 2 buffers are not back")
		for _, b := range []*pinnedpool.Buffer{a, b} {
			require.True(t, r.pool.Readmit(b))
			r.pool.Put(b)
			_, err = r.pool.Get(t.Context())
			require.ErrorIs(t, err, pinnedpool.ErrClosed)
		}
		r.close()
	})
}
