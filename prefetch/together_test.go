package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Tests of batches that travel several to a copy.

// A batch that has been read comes when it was read, however long the one behind it
// takes, also where that has room in the same copy.
func TestABatchIsNotHeldBackForTheNext(t *testing.T) {
	const ms = time.Millisecond
	slow := map[int]time.Duration{3: time.Hour, 9: time.Minute, 10: time.Minute, 17: time.Hour}
	for _, form := range []string{"Batches", "Map", "transform"} {
		for _, per := range []int{1, 2, 4, 7} {
			for _, step := range []time.Duration{0, 12 * ms, 23 * ms} {
				t.Run(fmt.Sprint(form, per, step), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						start := time.Now()
						read := make([]time.Duration, 20) // when each was
						data := canary{n: 20, width: 4}
						data.read = func(_ context.Context, i int) error {
							time.Sleep(5*ms + slow[i])
							read[i] = time.Since(start)
							return nil
						}
						po := prefetch.Options{Depth: 3, BatchesPerCopy: per}
						if form == "transform" {
							po.Transform = passOn(cpuSpin, 0, data)
						}
						r := newRig(t, data, cpu.Options{Model: &cpu.Model{}}, 1, loader.Options{Workers: 1}, po)
						asked := time.Duration(0) // when the loop asked for its next batch
						n := 0
						got := func(at prefetch.Position) {
							require.Equal(t, n, at.Batch)
							require.Equal(t, max(asked, read[n]), time.Since(start), "batch %d", n)
							time.Sleep(step)
							asked = time.Since(start)
							n++
						}
						if form == "Map" {
							for res, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: data.Fields()}, r.echo(always(0))) {
								require.NoError(t, err)
								got(res.Position())
							}
						} else {
							for b, err := range r.pf.Batches(t.Context()) {
								require.NoError(t, err)
								got(b.Position())
							}
						}
						require.Equal(t, 20, n)
						r.close()
					})
				})
			}
		}
	}
}

// While producers are ahead of a loop, copies are full.
func TestCopiesAreFullWhileProducersAreAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 400, width: 4}
		data.read = func(context.Context, int) error { time.Sleep(time.Millisecond); return nil }
		r := newRig(t, data, cpu.Options{Model: &cpu.Model{}}, 1, loader.Options{Workers: 1}, prefetch.Options{BatchesPerCopy: 8})
		for _, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			time.Sleep(2 * time.Millisecond)
		}
		require.LessOrEqual(t, r.pf.Stats().Uploads, int64(400/8+8))
		r.close()
	})
}

// An error of Apply comes behind all batches before its own, also those of the same
// copy, and the position is its batch's.
func TestATransformsErrorComesBehindTheBatchesOfItsCopy(t *testing.T) {
	boom := errors.New("boom")
	for at := range 9 {
		for _, how := range []string{"error", "panic", "Goexit"} {
			t.Run(fmt.Sprint(how, at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					data := canary{n: 40, width: 8}
					failing := passOn(cpuSpin, time.Millisecond, data)
					pass, failed := failing.Apply, false
					failing.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
						err := pass(s, out, in)
						if in.Position().Batch == at && !failed {
							failed = true
							switch how {
							case "panic":
								panic(boom)
							case "Goexit":
								runtime.Goexit()
							}
							return boom
						}
						return err
					}
					r := newRig(t, data, adversarial(5*time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 4, Transform: failing})
					var all []reading
					for range 2 {
						for b, err := range r.pf.Batches(t.Context()) {
							if err != nil {
								var of *prefetch.StageError
								require.ErrorAs(t, err, &of)
								require.Equal(t, at, of.Position.Batch)
								require.Len(t, all, at)
								require.EqualValues(t, 2*at, r.pf.State().Position)
								break
							}
							all = append(all, r.read(b, 2*time.Millisecond))
						}
					}
					r.sequence(all, 1)
					r.close()
				})
			})
		}
	}
}

// Where a Transform ends the uploader's goroutine, and what it has done to the batches before
// can't be marked, both are told: that those batches don't come has a reason of its own.
func TestATransformExitsAndARecordFails(t *testing.T) {
	boom := errors.New("boom")
	fired := int64(0)
	for at := range 9 {
		synctest.Test(t, func(t *testing.T) {
			data := canary{n: 40, width: 8}
			exiting := passOn(cpuSpin, time.Millisecond, data)
			var (
				r     *rig
				armed *devicetest.Armed
				pass  = exiting.Apply
			)
			exiting.Apply = func(s *device.Stream, out, in prefetch.Fields) error {
				if in.Position().Batch == at && armed == nil {
					armed = r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "ready", Stream: "transform", Nth: 1, Err: boom})
					runtime.Goexit()
				}
				return pass(s, out, in)
			}
			r = newRig(t, data, adversarial(5*time.Millisecond), 2, plain, prefetch.Options{Depth: 2, BatchesPerCopy: 4, Transform: exiting})
			var all []reading
			var failed error
			for range 3 {
				for b, err := range r.pf.Batches(t.Context()) {
					if err != nil {
						failed = errors.Join(failed, err)
						require.EqualValues(t, 2*len(all), r.pf.State().Position)
						if len(all) < at { // they were in the same copy
							require.ErrorIs(t, err, boom)
						}
						break
					}
					all = append(all, r.read(b, 2*time.Millisecond))
				}
				if len(all) == 20 {
					break
				}
			}
			require.ErrorAs(t, failed, new(*loader.GoexitError))
			r.sequence(all, 1)
			fired += armed.Fired()
			r.close()
		})
	}
	require.Positive(t, fired, "an exit behind the first batch of a copy")
}

// Batches go past a compute stream that is at work to one that is idle; in turn only
// where both are.
func TestAnIdleStreamIsPreferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		co := cpu.Options{Model: &cpu.Model{ComputeEngines: 2}}
		r := newRig(t, canary{n: 40, width: 4}, co, 2, plain, prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 2}})
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		next := func(step time.Duration) *device.Stream {
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			defer b.Release()
			require.NoError(t, r.spin(b.Stream(), step))
			time.Sleep(time.Millisecond)
			return b.Stream()
		}
		first, second := next(0), next(0)
		require.NotSame(t, first, second, "both are idle: in turn")
		for range 3 {
			busy := next(time.Minute)
			for range 3 {
				require.NotSame(t, busy, next(0))
			}
			require.NoError(t, busy.Synchronize(t.Context()))
		}
		require.NoError(t, rd.Close())
		r.close()
	})
}

// A copy goes into one raw buffer while the transform reads the other.
func TestCopyAndTransformOverlap(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		data := canary{n: 40, width: 4}
		r := newRig(t, data, cpu.Options{Model: modelled(10 * ms)}, 2, plain, prefetch.Options{Transform: passOn(cpuSpin, 10*ms, data)})
		start := time.Now()
		for b, err := range r.pf.Batches(t.Context()) {
			require.NoError(t, err)
			if b.Position().Batch == 19 {
				require.NoError(t, b.Stream().Synchronize(t.Context()))
			}
		}
		require.Equal(t, (20*10+10)*ms, time.Since(start), "20 batches, and the last one's transform")
		r.close()
	})
}

// lengths notes how many bytes each copy to the device has.
type lengths struct {
	driver.Device
	of []int
}

func (l *lengths) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	l.of = append(l.of, len(src))
	return l.Device.CopyH2D(s, dst, src)
}

// Of a short batch only its own rows travel, also behind full ones of the same copy.
func TestNoStaleTailTravels(t *testing.T) {
	for _, per := range []int{1, 4} {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		l := &lengths{Device: drv}
		r := newRigOn(t, l, cpuSpin, canary{n: 30, width: 5}, 4, loader.Options{Workers: 1}, prefetch.Options{BatchesPerCopy: per})
		require.NoError(t, r.epochs(1, 0))
		require.Equal(t, []int{2 * 8, 2 * 5}, l.of[len(l.of)-2:])
		r.close()
	}
}
