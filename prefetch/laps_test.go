package prefetch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A slot that failed is as good as new once it has come to rest: the only one there is
// serves for every batch that follows.
func TestTheOnlySlotServesAgainAfterItFailed(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []call{
		{op: devicetest.Record, event: "consumed"}, {op: devicetest.Record, event: "ready"}, {op: devicetest.CopyH2D},
		{op: devicetest.Wait, event: "consumed"}, {op: devicetest.Wait, event: "ready"},
	} {
		t.Run(c.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 1, BatchesPerCopy: 1})
				r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Nth: 3, Err: boom})
				require.ErrorIs(t, r.epochs(1, time.Millisecond), boom)
				r.tap.Disarm()
				require.NoError(t, r.pf.Seek(0, 0))
				require.NoError(t, r.epochs(2, time.Millisecond))
				require.NoError(t, r.pf.Close())
				require.Zero(t, r.pf.Stats().Free, "nothing waits for the uploader any more")
				r.close()
			})
		})
	}
}

// A batch in the last lease, with the one that travelled with it thrown away, is all that
// there is: Next says so.
func TestWhatIsThrownAwayHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := canary{n: 20, width: 8, read: func(context.Context, int) error { time.Sleep(time.Millisecond); return nil }}
		r := newRig(t, slow, adversarial(time.Millisecond), 2, loader.Options{Workers: 1},
			prefetch.Options{Depth: 1, BatchesPerCopy: 2, Memory: prefetch.Memory{HostSlots: 4}})
		require.NoError(t, r.pf.Start(t.Context()))
		time.Sleep(time.Second) // the first is there, and two are filled that wait for its slot
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		first, err := rd.Next(t.Context())
		require.NoError(t, err)
		first.Release()
		held, err := rd.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3*r.ld.Layout().Size(), r.pf.Stats().Bytes, "it has not travelled alone")
		require.NoError(t, rd.Close())
		require.NoError(t, r.pf.Seek(0, 10))
		rd, err = r.pf.Open(t.Context())
		require.NoError(t, err)
		_, err = rd.Next(t.Context())
		require.ErrorIs(t, err, prefetch.ErrLeases)
		held.Release()
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 5, b.Position().Batch)
		b.Release()
		require.NoError(t, rd.Close())
		r.close()
	})
}

// A batch that lacks rows travels field by field: the error of any of the copies is one of
// the batch, whichever way it travels.
func TestTheCopyOfOneFieldFails(t *testing.T) {
	boom := errors.New("boom")
	for _, mapped := range []bool{false, true} {
		for field := range int64(2) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, canary{n: 7, width: 8}, adversarial(time.Millisecond), 2, loader.Options{Workers: 2, Last: loader.Keep},
					prefetch.Options{Depth: 2, BatchesPerCopy: 1})
				rule := devicetest.Rule{Op: devicetest.CopyH2D, Nth: 4 + field, Err: boom}
				if mapped {
					rule.Op, rule.Stream = devicetest.CopyD2H, "download"
				}
				armed := r.tap.Arm(rule)
				n, err := r.rest(mapped, 0)
				require.ErrorIs(t, err, boom)
				require.Equal(t, 3, n)
				require.EqualValues(t, 1, armed.Fired())
				r.tap.Disarm()
				n, err = r.rest(mapped, 0)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				r.close()
			})
		}
	}
}

// With a transform the measured copy is the one into its raw memory, of every upload.
func TestCopiesBeforeATransformAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 40, width: 8}
		r := newRig(t, data, adversarial(4*time.Millisecond), 2, plain,
			prefetch.Options{BatchesPerCopy: 1, Timing: true, Transform: passOn(cpuSpin, time.Millisecond, data)})
		require.NoError(t, r.epochs(1, time.Millisecond))
		s := r.pf.Stats()
		require.EqualValues(t, 20, s.Uploads)
		require.Equal(t, s.Uploads, s.TimedUploads)
		require.Equal(t, 20*4*time.Millisecond, s.CopyTime)
		r.close()
	})
}

// Full neighbours travel in one copy, and a batch that lacks rows field by field.
func TestNeighboursTravelInOneCopyAndShortBatchesByField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := canary{n: 7, width: 8, read: func(context.Context, int) error { time.Sleep(time.Millisecond); return nil }}
		r := newRig(t, slow, adversarial(time.Millisecond), 2, loader.Options{Workers: 1, Last: loader.Keep},
			prefetch.Options{Depth: 1, BatchesPerCopy: 4, Memory: prefetch.Memory{HostSlots: 4}})
		require.NoError(t, r.pf.Start(t.Context()))
		time.Sleep(time.Second) // the first is there, and the others wait for its slot
		require.NoError(t, r.epochs(1, 0))
		require.EqualValues(t, 2, r.pf.Stats().Uploads)
		require.EqualValues(t, 1+1+2, r.tap.Count(devicetest.CopyH2D))
		r.close()
	})
}
