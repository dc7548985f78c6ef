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

var errBoom = errors.New("boom")

func TestAQuarantinedBufferIsNeverSeenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
		stuck := r.get()
		r.pool.Quarantine(stuck)
		for range 5 {
			b := r.get()
			require.NotSame(t, stuck, b)
			r.pool.Put(b)
		}
		s := r.pool.Stats()
		require.Equal(t, 1, s.Quarantined)
		require.EqualValues(t, 2*slotBytes, s.Bytes, "its memory counts")

		r.pool.Quarantine(r.get())
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrExhausted, "waiting would be for ever")
		require.NoError(t, r.pool.Failed(), "the device is well")
		require.ErrorContains(t, r.pool.Close(t.Context()), "2 of 2 buffers are not back")
		require.EqualValues(t, 2, r.dev.Usage().HostBuffers, "somebody may still write there")
	})
}

func TestTheLastQuarantineWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{}, pinnedpool.Options{Slots: 1, SlotBytes: slotBytes})
		b := r.get()
		failed := make(chan error)
		go func() {
			_, err := r.pool.Get(t.Context())
			failed <- err
		}()
		synctest.Wait()
		r.pool.Quarantine(b)
		require.ErrorIs(t, <-failed, pinnedpool.ErrExhausted)
	})
}

// An event's error, of whichever buffer, ends the recycling: nothing that may still
// be read is handed out, everybody is told, and Recover takes up work again.
func TestAnEventsErrorFreesNothing(t *testing.T) {
	for _, op := range []devicetest.Op{devicetest.SynchronizeEvent, devicetest.EventDone} {
		for nth := int64(1); nth <= 3; nth++ {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 3, SlotBytes: slotBytes})
				r.tap.Arm(devicetest.Rule{Op: op, Event: "copied", Nth: nth, Err: errBoom})
				var err error
				for uploads := 0; err == nil && uploads < 20; uploads++ {
					var b *pinnedpool.Buffer
					if b, err = r.pool.Get(t.Context()); err == nil {
						r.upload(b, byte(uploads))
					}
				}
				require.ErrorIs(t, err, errBoom)
				require.ErrorIs(t, r.pool.Failed(), errBoom)
				require.ErrorIs(t, r.pool.Drain(t.Context()), errBoom)
				require.ErrorIs(t, r.pool.Close(t.Context()), errBoom, "and Close frees nothing")
				require.EqualValues(t, 3, r.dev.Usage().HostBuffers)

				require.NoError(t, r.copies.Synchronize(t.Context()))
				r.pool.Recover()
				require.NoError(t, r.pool.Failed())
				require.Equal(t, 3, r.pool.Stats().Free)
				for lap := range 10 {
					r.upload(r.get(), byte(lap))
				}
				r.close()
			})
		}
	}
}

func TestRecoverLeavesAHealthyPoolAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), pinnedpool.Options{Slots: 1, SlotBytes: slotBytes})
		r.upload(r.get(), 1)
		r.pool.Recover()
		require.Equal(t, 1, r.pool.Stats().InFlight)
		r.close()
	})
}

// A pool all of whose buffers were quarantined has none after Recover either.
func TestRecoverBringsNothingBackFromQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
		r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Err: errBoom})
		held := r.get()
		r.upload(r.get(), 1)
		synctest.Wait()
		require.ErrorIs(t, r.pool.Failed(), errBoom)
		require.NoError(t, r.copies.Synchronize(t.Context()))
		r.pool.Quarantine(held)
		r.pool.Recover()
		r.pool.Quarantine(r.get())
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, pinnedpool.ErrExhausted)
	})
}

func TestAFaultOfTheDeviceWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), pinnedpool.Options{Slots: 1, SlotBytes: slotBytes})
		bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { panic("out of range") }}
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Second)))
		require.NoError(t, r.copies.Launch(&device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}))
		r.upload(r.get(), 1)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, device.ErrFault)
		require.ErrorIs(t, r.pool.Drain(t.Context()), device.ErrFault)
	})
}

// An event that is late holds up those behind it on its stream, and Drain and Close
// no longer than their contexts; then they may be called again.
func TestDrainAndCloseWaitNoLongerThanTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
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
		r := newRig(t, cpu.Options{}, pinnedpool.Options{Slots: 3, SlotBytes: slotBytes})
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
		r := newRig(t, cpu.Options{}, pinnedpool.Options{Slots: 1, SlotBytes: slotBytes})
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
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, pinnedpool.Options{Slots: 4, SlotBytes: slotBytes})
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
		r := newRig(t, cpu.Options{Model: &cpu.Model{}}, pinnedpool.Options{Slots: 2, SlotBytes: slotBytes})
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Delay: time.Second})
		r.tap.Arm(devicetest.Rule{Op: devicetest.FreeHost, Nth: 1, Err: errBoom})
		closed := make(chan error)
		for range 2 {
			go func() { closed <- r.pool.Close(t.Context()) }()
		}
		require.ErrorIs(t, <-closed, errBoom)
		require.ErrorIs(t, <-closed, errBoom)
		require.NoError(t, r.pool.Close(t.Context()))
	})
}
