package prefetch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/prefetch"
)

// A batch in hand is one that its stream has not finished, also if nothing is submitted
// for it yet; and so is what was submitted for it after the stream was asked.
func TestABatchInHandCountsAsUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := adversarial(time.Millisecond)
		co.Model.ComputeEngines = 2
		r := newRig(t, canary{n: 40, width: 8}, co, 2, plain,
			prefetch.Options{Depth: 6, BatchesPerCopy: 1, Streams: prefetch.Streams{Compute: 2}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		next := func() prefetch.Batch {
			t.Helper()
			time.Sleep(10 * time.Millisecond) // what was released is done
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			return b
		}
		all := make([]reading, 0, 20)
		held := next()
		slow := held.Stream()
		others := func(n int) {
			t.Helper()
			for range n {
				b := next()
				require.NotSame(t, slow, b.Stream())
				all = append(all, r.read(b, 0))
				b.Release()
			}
		}
		others(5)
		all = append([]reading{r.read(held, time.Second)}, all...)
		held.Release()
		others(5)
		time.Sleep(time.Second)
		seen := false
		for range 9 {
			b := next()
			seen = seen || b.Stream() == slow
			all = append(all, r.read(b, 0))
			b.Release()
		}
		require.True(t, seen, "it has finished")
		require.NoError(t, rd.Close())
		r.sequence(all, 1)
		r.close()
	})
}

// inside counts the goroutines that wait in the device for an event. They are slow to
// leave.
type inside struct {
	driver.Device
	n atomic.Int32
}

func (d *inside) SynchronizeEvent(ctx context.Context, e driver.Event) error {
	d.n.Add(1)
	defer d.n.Add(-1)
	err := d.Device.SynchronizeEvent(ctx, e)
	time.Sleep(time.Millisecond)
	return err
}

// Who waits for compute to be done with a slot calls the device as well, and so does the
// uploader that looks for a slot: neither does after Quiesce, also where a batch is
// released meanwhile.
func TestQuiescedNobodyAsksForASlot(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			co := adversarial(time.Millisecond)
			co.Model.ComputeEngines = 2
			drv, err := cpu.New(co)
			require.NoError(t, err)
			waiting := &inside{Device: drv}
			r := newRigOn(t, waiting, cpuSpin, canary{n: 40, width: 8}, 2, plain,
				prefetch.Options{Depth: 2, BatchesPerCopy: 1, Streams: prefetch.Streams{Compute: 2}})
			rd, err := r.pf.Open(t.Context())
			require.NoError(t, err)
			var all []reading
			next := func(busy time.Duration) prefetch.Batch {
				t.Helper()
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				all = append(all, r.read(b, busy))
				return b
			}
			a, b := next(time.Minute), next(time.Minute)
			a.Release()
			if !meanwhile {
				b.Release()
			}
			time.Sleep(time.Second)
			require.Positive(t, waiting.n.Load(), "slots are watched")
			require.NoError(t, r.pf.Quiesce(t.Context()))
			require.Zero(t, waiting.n.Load())
			asked, waits := r.tap.Count(devicetest.EventDone), r.tap.Count(devicetest.SynchronizeEvent)
			if meanwhile {
				b.Release()
			}
			time.Sleep(time.Second)
			require.NoError(t, r.pf.Quiesce(t.Context()), "it is at rest")
			require.Equal(t, asked, r.tap.Count(devicetest.EventDone))
			require.Equal(t, waits, r.tap.Count(devicetest.SynchronizeEvent))
			require.Zero(t, waiting.n.Load())
			time.Sleep(2 * time.Minute) // compute is done with both, and nobody has seen it
			for range 18 {
				next(0).Release()
			}
			require.NoError(t, rd.Close())
			r.sequence(all, 1)
			r.close()
		})
	}
}

// far is a device that is a peer of r's, behind a Tap of its own.
func far(t *testing.T) (*devicetest.Tap, *device.Device, *device.Stream) {
	t.Helper()
	drv, err := cpu.New(cpu.Options{Index: 1})
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	dev := device.New(tap)
	stream, err := dev.NewStream(device.StreamOptions{Name: "remote"})
	require.NoError(t, err)
	return tap, dev, stream
}

// A peer that refuses an event is an error of UsedOn, and of nothing else.
func TestAPeerThatRefusesAnEvent(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 1})
		tap, dev, remote := far(t)
		tap.Arm(devicetest.Rule{Op: devicetest.NewEvent, Nth: 1, Err: boom})
		var all []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			err := b.UsedOn(remote)
			if len(all) == 0 {
				require.ErrorIs(t, err, boom)
				require.ErrorAs(t, err, new(*prefetch.StreamError))
			} else {
				require.NoError(t, err)
			}
			all = append(all, r.read(b, 0))
		}
		r.sequence(all, 1)
		r.close()
		require.NoError(t, errors.Join(remote.Close(), dev.Close()))
	})
}

// An error of waiting for a peer, or of giving its event back, is told: only that a peer
// is closed needs no words.
func TestAnErrorAboutAPeerIsTold(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 1, BatchesPerCopy: 1})
		tap, dev, remote := far(t)
		var failed error
		for b, err := range r.pf.Batches(t.Context()) {
			if err != nil {
				failed = err
				break
			}
			require.NoError(t, b.UsedOn(remote))
			if b.Position().Batch == 3 {
				r.tap.Arm(devicetest.Rule{Op: devicetest.Wait, Stream: "copy", Nth: 2, Err: boom}) // behind the one for compute
			}
		}
		require.ErrorIs(t, failed, boom)
		r.tap.Disarm()
		n := 0
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			require.NoError(t, b.UsedOn(remote))
			n++
		}
		require.Equal(t, 6, n)
		armed := tap.Arm(devicetest.Rule{Op: devicetest.FreeEvent, Err: boom})
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.ErrorIs(t, r.pf.Close(), boom)
		require.EqualValues(t, 1, armed.Fired())
		tap.Disarm()
		r.nothingLeft()
		require.NoError(t, errors.Join(r.arena.Close(), r.compute.Close(), r.dev.Close(), remote.Close()))
		require.ErrorAs(t, dev.Close(), new(*cpu.LeakError))
	})
}

// Streams of a peer and of the batch's own device in any order, lap after lap: none of the
// events goes astray, and none is made twice.
func TestEventsOfAPeerAndOfTheDeviceAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, canary{n: 160, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 1})
		_, dev, remote := far(t)
		local := r.stream("local")
		events, of := r.dev.Usage().Events, dev.Usage().Events
		orders := [][]*device.Stream{{}, {local}, {remote}, {local, remote}, {remote, local}}
		var all, there []reading
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			for _, s := range orders[len(all)*7/3%len(orders)] {
				require.NoError(t, b.UsedOn(s))
				if s == local {
					there = append(there, r.readOn(b, local, 3*time.Millisecond))
				}
			}
			all = append(all, r.read(b, 0))
			require.Equal(t, events, r.dev.Usage().Events)
			require.LessOrEqual(t, dev.Usage().Events, of+2)
		}
		r.sequence(all, 1)
		require.NotEmpty(t, there)
		for _, got := range there {
			require.NoError(t, r.verify(got))
		}
		require.NoError(t, local.Close())
		r.close()
		require.Equal(t, of, dev.Usage().Events)
		require.NoError(t, errors.Join(remote.Close(), dev.Close()))
	})
}
