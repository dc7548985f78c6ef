package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A shape is one form of the pipeline, and the driver calls on its path.
type shape struct {
	name    string
	options func(canary) prefetch.Options
	mapped  bool
	calls   []call
}

type call struct {
	op            devicetest.Op
	event, stream string
}

func (c call) String() string { return strings.TrimSpace(fmt.Sprint(c.op, " ", c.event, c.stream)) }

var upload = []call{
	{op: devicetest.CopyH2D}, {op: devicetest.Record, event: "copied"}, {op: devicetest.Record, event: "ready"},
	{op: devicetest.Record, event: "consumed"}, {op: devicetest.Wait, event: "ready"}, {op: devicetest.Wait, event: "consumed"},
	{op: devicetest.SynchronizeEvent, event: "copied"}, {op: devicetest.EventDone, event: "copied"},
}

var shapes = []shape{
	{name: "plain", options: func(canary) prefetch.Options {
		return prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 3}}
	}, calls: upload},
	{name: "three in a copy", options: func(canary) prefetch.Options {
		return prefetch.Options{Depth: 2, BatchesPerCopy: 3, Memory: prefetch.Memory{HostSlots: 9}}
	}, calls: upload},
	{name: "timed", options: func(canary) prefetch.Options {
		return prefetch.Options{Depth: 2, Timing: true, Memory: prefetch.Memory{HostSlots: 3}}
	}, calls: []call{
		{op: devicetest.Record, event: "started"}, {op: devicetest.Record, event: "ended"}, {op: devicetest.Record, event: "reached"},
	}},
	{name: "transform", options: func(data canary) prefetch.Options {
		return prefetch.Options{Depth: 2, Transform: passOn(cpuSpin, time.Millisecond, data), Memory: prefetch.Memory{HostSlots: 3}}
	}, calls: append([]call{
		{op: devicetest.Record, event: "filled"}, {op: devicetest.Wait, event: "filled"}, {op: devicetest.Record, event: "read "},
		{op: devicetest.Wait, event: "read "}, {op: devicetest.Launch, stream: "transform"}, {op: devicetest.CopyD2D, stream: "transform"},
	}, upload...)},
	{name: "map", options: func(canary) prefetch.Options {
		return prefetch.Options{Depth: 2, Memory: prefetch.Memory{HostSlots: 3}}
	}, mapped: true,
		calls: append([]call{
			{op: devicetest.Record, event: "written"}, {op: devicetest.Wait, event: "written"}, {op: devicetest.CopyD2H, stream: "download"},
			{op: devicetest.Record, event: "fetched"}, {op: devicetest.SynchronizeEvent, event: "fetched"},
			{op: devicetest.CopyD2D, stream: "compute"}, {op: devicetest.Launch, stream: "compute"},
		}, upload...)},
	{name: "map of two streams", options: func(canary) prefetch.Options {
		return prefetch.Options{Depth: 3, BatchesPerCopy: 2, Streams: prefetch.Streams{Compute: 2}, Memory: prefetch.Memory{HostSlots: 6}}
	}, mapped: true, calls: append([]call{{op: devicetest.StreamDone}, {op: devicetest.Record, event: "written"}, {op: devicetest.CopyD2H, stream: "download"}}, upload...)},
}

// rest reads what is left of the epoch, in the shape's form, and returns how many
// batches arrived whole, and the error behind them.
func (r *rig) rest(mapped bool, busy time.Duration) (n int, err error) {
	r.t.Helper()
	var all []reading
	if mapped {
		out := prefetch.Output{Fields: r.data.Fields(), AsFinished: r.pf.Plan().ComputeStreams > 1}
		for res, failed := range r.pf.Map(r.t.Context(), out, r.echo(always(busy))) {
			if err = failed; err == nil {
				all = append(all, got(res))
			}
		}
	} else {
		for b, failed := range r.pf.Batches(r.t.Context()) {
			if err = failed; err == nil {
				all = append(all, r.read(b, busy))
			}
		}
	}
	require.NoError(r.t, r.dev.Synchronize(r.t.Context()))
	for _, got := range all {
		require.NoError(r.t, r.verify(got))
	}
	return len(all), err
}

// Each driver call of each form of the pipeline fails in turn, once, at the first, a
// middle and the last batch: it is one clear error, what was delivered is right,
// the same Prefetcher takes up work again, and so does the next on the device.
func TestAnyFailingCallOfAnyFormIsOneClearError(t *testing.T) {
	boom := errors.New("boom")
	const batches = 12
	for _, s := range shapes {
		for _, c := range s.calls {
			for _, nth := range []int64{1, 5, batches} {
				t.Run(fmt.Sprintf("%s/%v/nth=%d", s.name, c, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						data := canary{n: 2 * batches, width: 8}
						r := newRig(t, data, adversarial(time.Millisecond), 2, loader.Options{Shuffle: true, Workers: 2}, s.options(data))
						armed := r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Stream: c.stream, Nth: nth, Err: boom})
						reports := 0
						for range 3 { // what an epoch's end couldn't report, the next Open does
							if _, err := r.rest(s.mapped, 2*time.Millisecond); err != nil {
								require.ErrorIs(t, err, boom)
								reports++
							}
						}
						if !onlyAsks(c) {
							require.EqualValues(t, armed.Fired(), reports)
						}
						require.LessOrEqual(t, reports, 1)
						r.tap.Disarm()
						require.NoError(t, r.pf.Seek(0, 0))
						n, err := r.rest(s.mapped, time.Millisecond)
						require.NoError(t, err)
						require.Equal(t, batches, n)
						require.NoError(t, r.pf.Close())
						r.nothingLeft()

						r.pf, err = prefetch.New(r.compute, r.ld, s.options(data))
						require.NoError(t, err)
						n, err = r.rest(s.mapped, time.Millisecond)
						require.NoError(t, err)
						require.Equal(t, batches, n)
						r.close()
					})
				})
			}
		}
	}
}

// Close comes at once behind a call that failed: it waits for what was submitted
// before, and leaves nothing.
func TestCloseBehindAFailingCallLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, s := range shapes {
		for _, c := range s.calls {
			for _, nth := range []int64{1, 5} {
				t.Run(fmt.Sprintf("%s/%v/nth=%d", s.name, c, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						data := canary{n: 24, width: 8}
						r := newRig(t, data, adversarial(3*time.Millisecond), 2, loader.Options{Shuffle: true, Workers: 2}, s.options(data))
						r.tap.Arm(devicetest.Rule{Op: c.op, Event: c.event, Stream: c.stream, Nth: nth, Err: boom})
						if failed := r.endless(s.mapped); failed != nil {
							require.ErrorIs(t, failed, boom)
						}
						if err := r.pf.Close(); err != nil {
							require.ErrorIs(t, err, boom)
						}
						r.nothingLeft()
						require.NoError(t, r.pf.Close())
						require.NoError(t, r.dev.Synchronize(t.Context()))
					})
				})
			}
		}
	}
}

// onlyAsks is true of calls that ask how far the device is. Where they fail and
// nothing is wanted of what they asked about, no harm is done and nobody is told.
func onlyAsks(c call) bool {
	return c.op == devicetest.StreamDone || c.event == "copied" && c.op != devicetest.Record
}

// A device that ends under the pipeline, at whichever operation: the error is the
// device's own, nobody waits for it for ever, and Close returns.
func TestADeviceThatEndsIsReportedByEveryForm(t *testing.T) {
	broken := errors.New("broken")
	for _, s := range shapes {
		for _, op := range []string{"CopyH2D", "Launch", "CopyD2D", "CopyD2H"} {
			for _, nth := range []int{1, 4, 11} {
				t.Run(fmt.Sprintf("%s/%s/nth=%d", s.name, op, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						data := canary{n: 24, width: 8}
						co := adversarial(time.Millisecond)
						seen := 0
						co.Adversary.Fault = func(c cpu.Call) error {
							if c.Op == op {
								if seen++; seen == nth {
									return broken
								}
							}
							return nil
						}
						r := newRig(t, data, co, 2, loader.Options{Shuffle: true, Workers: 2}, s.options(data))
						start := time.Now()
						failed := r.endless(s.mapped)
						if seen < nth {
							require.NoError(t, r.pf.Close())
							t.Skip("there is no such operation")
						}
						require.ErrorIs(t, failed, device.ErrFault)
						require.ErrorIs(t, failed, broken)
						var last error
						for _, last = range r.pf.Batches(t.Context()) { // what was ready when the device ended may come yet
						}
						for range 2 { // and then, again, the error rather than a wait
							for _, last = range r.pf.Batches(t.Context()) {
							}
							require.ErrorIs(t, last, device.ErrFault)
						}
						require.ErrorIs(t, r.pf.Close(), device.ErrFault)
						require.Less(t, time.Since(start), time.Minute)
						require.NoError(t, r.pf.Close())
					})
				})
			}
		}
	}
}

// endless ranges over epochs until an error.
func (r *rig) endless(mapped bool) error {
	for range 3 {
		if mapped {
			for _, err := range r.pf.Map(r.t.Context(), prefetch.Output{Fields: r.data.Fields()}, r.echo(always(2*time.Millisecond))) {
				if err != nil {
					return err
				}
			}
			continue
		}
		host := make([]byte, 16)
		for b, err := range r.pf.Batches(r.t.Context()) {
			if err != nil {
				return err
			}
			err := errors.Join(r.spin(b.Stream(), time.Millisecond), b.Stream().CopyD2H(host, b.Field("index").View),
				b.Stream().Synchronize(context.Background()))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Where the device does not come to rest after a failure while Open's context lasts, Open
// says why that has ended, and nothing is lost.
func TestOpenTellsWhyItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom, enough := errors.New("boom"), errors.New("enough")
		r := newRig(t, canary{n: 20, width: 8}, adversarial(time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 1})
		r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "ready", Nth: 3, Err: boom})
		var failed error
		for b, err := range r.pf.Batches(t.Context()) {
			if err != nil {
				failed = err
				break
			}
			require.NoError(t, r.spin(b.Stream(), time.Hour))
		}
		require.ErrorIs(t, failed, boom)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		_, err := r.pf.Open(ctx)
		require.Equal(t, enough, err)
		require.NoError(t, r.dev.Synchronize(t.Context()))
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		b, err := rd.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, b.Position().Batch)
		b.Release()
		require.NoError(t, rd.Close())
		r.close()
	})
}
