package pinnedpool_test

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
	"github.com/leat-go/leat/pinnedpool"
)

// An event that is late holds up those behind it on its stream, and Drain and Close
// no longer than their contexts; then they may be called again.
func TestDrainAndCloseWaitNoLongerThanTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 2, slotBytes, pinnedpool.Options{})
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Minute)))
		r.upload(r.get(), 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, r.pool.Drain(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, r.pool.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.EqualValues(t, 2, r.dev.Usage().HostBuffers, "nothing is freed under a copy")
		b := r.get()
		r.pool.Put(b) // it is still open
		r.close()
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestCloseLeavesWhatIsHeldAndMayBeCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 3, slotBytes, pinnedpool.Options{})
		held := r.get()
		require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 3 buffers are not back")
		require.EqualValues(t, 1, r.dev.Usage().HostBuffers)
		held.Bytes()[0] = 1 // still legal
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed)
		r.pool.Put(held)
		_, err = r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed, "also with a buffer there")
		require.NoError(t, r.pool.Close(t.Context()))
		r.nothingLeft()
		require.NoError(t, r.pool.Close(t.Context()), "Close is idempotent")
	})
}

func TestCloseWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
		b := r.get()
		failed := make(chan error)
		go func() {
			_, err := r.pool.Get(t.Context())
			failed <- err
		}()
		synctest.Wait()
		require.Error(t, r.pool.Close(t.Context()))
		require.ErrorIs(t, <-failed, pinnedpool.ErrClosed)
		r.pool.Put(b)
		r.close()
	})
}

// A Close that begins during another waits for it: nothing is in use when it returns.
func TestClosesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 4, slotBytes, pinnedpool.Options{})
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Delay: time.Second})
		r.upload(r.get(), 1)
		closed := make(chan error)
		for range 3 {
			go func() {
				err := r.pool.Close(t.Context())
				if r.dev.Usage().HostBuffers != 0 {
					err = errors.New("Close returned before all was freed")
				}
				closed <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-closed)
		}
		held, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.NoError(t, r.pool.Close(held))
		r.tap.Disarm()
		r.close()
	})
}

func TestClosesAtOnceHaveOneError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 2, slotBytes, pinnedpool.Options{})
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Delay: time.Second})
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Nth: 1, Err: errBoom})
		closed := make(chan error)
		const closes = 4
		for range closes {
			go func() { closed <- r.pool.Close(t.Context()) }()
		}
		for range closes {
			require.ErrorIs(t, <-closed, errBoom)
		}
		require.NoError(t, r.pool.Close(t.Context()))
	})
}

// A Close that gives up leaves the pool to the one that waits for it.
func TestACloseBehindOneThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 2, slotBytes, pinnedpool.Options{})
		held := r.get()
		require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 2 buffers are not back")
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Minute)))
		r.upload(held, 1)
		start := time.Now()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first, second := make(chan error), make(chan error)
		go func() { first <- r.pool.Close(brief) }()
		synctest.Wait()
		go func() { second <- r.pool.Close(t.Context()) }()
		require.ErrorIs(t, <-first, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		require.NoError(t, <-second, "it has freed everything")
		require.Equal(t, time.Minute, time.Since(start))
		r.close()
	})
}

func TestACloseWaitsForAnotherNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, 1, slotBytes, pinnedpool.Options{})
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Minute)))
		r.upload(r.get(), 1)
		closed := make(chan error)
		go func() { closed <- r.pool.Close(t.Context()) }()
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.pool.Close(brief)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "another Close is under way")
		require.NoError(t, <-closed)
		r.close()
	})
}

// What was held during Close may still be copied from: its memory goes with the next
// Close, and so does the goroutine that waited for the copy.
func TestACopyAfterCloseIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 4, slotBytes, pinnedpool.Options{Together: 4})
		first, second := r.get(), r.get()
		r.upload(r.get(), 1) // so that the first Close ends a goroutine
		require.ErrorContains(t, r.pool.Close(t.Context()), "2 of 4 buffers are not back")
		start := time.Now()
		r.uploadTogether(first, second)
		require.Equal(t, 2, r.pool.Stats().InFlight)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed)
		require.EqualValues(t, 1, r.dev.Usage().HostBuffers)
		require.NoError(t, r.pool.Close(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(start), "nothing is freed under a copy")
		r.nothingLeft()
		r.close()
	})
}

// A fault behind Close is told by the next one; Recover makes way for another.
func TestAFaultAfterCloseIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 2, slotBytes, pinnedpool.Options{})
		held := r.get()
		require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 2 buffers are not back")
		r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "copied", Nth: 1, Err: errBoom})
		r.upload(held, 1)
		require.ErrorIs(t, r.pool.Close(t.Context()), errBoom)
		require.ErrorIs(t, r.pool.Failed(), errBoom)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed)
		require.EqualValues(t, 1, r.dev.Usage().HostBuffers)
		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Recover()
		_, err = r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrClosed)
		r.close()
	})
}

// A producer that goes on beside Close: what it held is given back by the next Close, and
// nothing is freed under its copy.
func TestCloseBesideAProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{Together: 2})
		produced := make(chan error)
		go func() {
			for {
				b, err := r.pool.Get(t.Context())
				if err != nil {
					produced <- err
					return
				}
				time.Sleep(1300 * time.Microsecond) // the copy before it is done, so that Close finds nothing in flight
				r.upload(b, 1)
			}
		}()
		time.Sleep(20 * time.Millisecond)
		require.ErrorContains(t, r.pool.Close(t.Context()), "1 of 3 buffers are not back")
		require.ErrorIs(t, <-produced, pinnedpool.ErrClosed)
		r.close()
	})
}

// The device has ended: nothing is freed, nobody waits, and no goroutine is left, even if
// the pool has yet to hear of it.
func TestAnAbandonedPoolLeavesNoGoroutine(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(time.Second), 2, slotBytes, pinnedpool.Options{})
			bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { panic("out of range") }}
			require.NoError(t, r.copies.Launch(cpu.Busy(time.Second)))
			require.NoError(t, r.copies.Launch(&device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}))
			r.upload(r.get(), 1)
			b := r.get()
			failed := make(chan error)
			go func() {
				_, err := r.pool.Get(t.Context())
				failed <- err
			}()
			synctest.Wait()
			r.pool.Abandon()
			require.ErrorIs(t, <-failed, pinnedpool.ErrClosed)
			r.pool.Put(b)
			if again {
				require.ErrorIs(t, r.pool.Close(t.Context()), device.ErrFault)
				r.pool.Abandon()
			}
			time.Sleep(time.Minute) // the device's last work is over, and told
			require.EqualValues(t, 2, r.dev.Usage().HostBuffers)
		})
	}
}
