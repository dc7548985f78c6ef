package pinnedpool_test

import (
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
		r := newRig(t, cpu.Options{}, 2, slotBytes, pinnedpool.Options{})
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
		r := newRig(t, cpu.Options{}, 1, slotBytes, pinnedpool.Options{})
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
	for nth := int64(1); nth <= 6; nth++ {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, slow(time.Millisecond), 3, slotBytes, pinnedpool.Options{})
			r.tap.Arm(devicetest.Rule{Op: devicetest.SynchronizeEvent, Event: "copied", Nth: nth, Err: errBoom})
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

func TestRecoverLeavesAHealthyPoolAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 1, slotBytes, pinnedpool.Options{})
		r.upload(r.get(), 1)
		r.pool.Recover()
		require.Equal(t, 1, r.pool.Stats().InFlight)
		r.close()
	})
}

// A pool all of whose buffers were quarantined has none after Recover either.
func TestRecoverBringsNothingBackFromQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Millisecond), 2, slotBytes, pinnedpool.Options{})
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
		require.ErrorContains(t, r.pool.Close(t.Context()), "2 of 2 buffers are not back")
	})
}

func TestAFaultOfTheDeviceWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow(time.Second), 1, slotBytes, pinnedpool.Options{})
		bad := &device.Kernel{Name: "bad", Go: func(*device.Args) { panic("out of range") }}
		require.NoError(t, r.copies.Launch(cpu.Busy(time.Second)))
		require.NoError(t, r.copies.Launch(&device.Launch{Kernel: bad, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}))
		r.upload(r.get(), 1)
		_, err := r.pool.Get(t.Context())
		require.ErrorIs(t, err, device.ErrFault)
		require.ErrorIs(t, r.pool.Drain(t.Context()), device.ErrFault)
		require.ErrorIs(t, r.pool.Close(t.Context()), device.ErrFault, "it frees nothing, but its goroutine ends")
	})
}
