package capture_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

var errOwn = errors.New("own")

// A step that ends by an error, a panic or runtime.Goexit, at its first capture, a later
// one, or where it is launched, submits nothing of that capture; run again on the same
// batch it is as if nothing had been.
func TestAStepThatEndsOtherwise(t *testing.T) {
	for name, end := range map[string]func() error{
		"error":  func() error { return errOwn },
		"panic":  func() error { panic(errOwn) },
		"goexit": func() error { runtime.Goexit(); return nil },
	} {
		for _, launched := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				const n, batch, steps = 300, 3, 100
				r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}, checked: true})
				ends := false
				r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
					if ends {
						if !launched {
							require.NoError(t, s.Memset(r.w.View(), 7)) // of no effect
						}
						return end()
					}
					return r.good(s, b, params)
				}
				step := r.step(capture.Options{Launch: launched})
				i := 0
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					if i%7 == 0 {
						ends = true
						result := make(chan error, 1)
						go func() {
							returned := false
							defer func() {
								switch p := recover(); {
								case p != nil:
									result <- p.(error)
								case !returned:
									result <- errOwn
								}
							}()
							err := step.Run(b, at(i))
							returned = true
							result <- err
						}()
						require.Equal(t, errOwn, <-result)
						ends = false
					}
					require.NoError(t, step.Run(b, at(i)))
					i++
				}
				require.Equal(t, r.expected(n, batch, steps), r.digests(steps))
				require.Zero(t, step.Report().Failures)
				r.close(step)
			})
		}
	}
}

// A capture that another goroutine spoils is named, costs a launch, and capturing goes on;
// three of them in a row, and it does not.
func TestACaptureThatOthersSpoil(t *testing.T) {
	for _, spoils := range []int{1, 2, 3} {
		const n, batch, steps = 300, 3, 100
		r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}})
		i, left := 0, 0
		r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
			capturing, err := s.Capturing()
			require.NoError(t, err)
			if capturing && left > 0 {
				left--
				synchronised := make(chan error)
				go func() { synchronised <- r.dev.Synchronize(context.Background()) }()
				require.ErrorIs(t, <-synchronised, device.ErrCapture)
				_ = r.good(s, b, params) // whatever it makes of it
				return nil
			}
			return r.good(s, b, params)
		}
		step := r.step(capture.Options{})
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			if i == 5 {
				left = spoils
			}
			require.NoError(t, step.Run(b, at(i)))
			i++
		}
		require.Equal(t, r.expected(n, batch, steps), r.digests(steps))
		report := step.Report()
		require.EqualValues(t, spoils, report.Failures)
		require.ErrorIs(t, report.Failure, device.ErrCapture)
		require.ErrorContains(t, report.Failure, "Synchronize")
		if spoils < 3 {
			require.NoError(t, report.Reason)
			require.EqualValues(t, spoils, report.Launches)
			require.Positive(t, report.Replays)
		} else {
			require.ErrorIs(t, report.Reason, device.ErrCapture)
			require.EqualValues(t, steps-5, report.Launches)
		}
		r.close(step)
	}
}

// Captures that fail now and then, and not in a row, are no reason to give up.
func TestCapturesThatOthersSpoilNowAndThen(t *testing.T) {
	const n, batch, steps = 300, 3, 100
	r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: 1}})
	attempts := 0
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		if capturing, err := s.Capturing(); err == nil && capturing {
			if attempts++; attempts%2 == 0 {
				_, err := r.dev.Alloc(8)
				return err
			}
		}
		return r.good(s, b, params)
	}
	step := r.step(capture.Options{})
	_, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(n, batch, steps), r.digests(steps))
	report := step.Report()
	require.NoError(t, report.Reason)
	require.Greater(t, report.Failures, int64(3))
	require.Positive(t, report.Replays)
	r.close(step)
}

// What a captured step must not do is refused and named, and the step is launched then:
// work on a stream that is not the step's, the batch's own included, and Batch.UsedOn.
func TestWhatACapturedStepMustNotDo(t *testing.T) {
	var batch prefetch.Batch
	for name, misuse := range map[string]struct {
		do   func(r *rig, side *device.Stream) error
		call string
	}{
		"work on the batch's stream": {func(r *rig, _ *device.Stream) error { return r.compute.Memset(r.log.View().Slice(8*1000, 8), 1) }, "Memset"},
		"work on another stream":     {func(r *rig, side *device.Stream) error { return side.Memset(r.log.View().Slice(8*1000, 8), 1) }, "Memset"},
		"UsedOn":                     {func(r *rig, side *device.Stream) error { return batch.UsedOn(side) }, "Wait"},
		"waiting":                    {func(r *rig, side *device.Stream) error { return side.Synchronize(context.Background()) }, "Synchronize"},
		"allocating": {func(r *rig, _ *device.Stream) error {
			b, err := r.dev.Alloc(8)
			if err == nil {
				err = b.Close()
			}
			return err
		}, "Alloc"},
	} {
		for _, swallowed := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				const n, size, steps = 30, 3, 10
				r := newRig(t, setting{n: n, batch: size, lo: loader.Options{Epochs: 1}})
				side, err := r.dev.NewStream(device.StreamOptions{Name: "side"})
				require.NoError(t, err)
				r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
					if err := misuse.do(r, side); err != nil && !swallowed {
						return err
					}
					return r.goodUnless(s, b, params, swallowed)
				}
				step := r.step(capture.Options{})
				i := 0
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					batch = b
					require.NoError(t, step.Run(b, at(i)))
					i++
				}
				require.Equal(t, r.expected(n, size, steps), r.digests(steps))
				report := step.Report()
				require.ErrorIs(t, report.Reason, device.ErrCapture)
				require.ErrorContains(t, report.Reason, misuse.call)
				require.Contains(t, report.String(), "no replays")
				require.EqualValues(t, 3, report.Failures)
				require.EqualValues(t, steps, report.Launches)
				require.NoError(t, r.dev.Synchronize(t.Context()))
				require.NoError(t, side.Close())
				r.close(step)
			})
		}
	}
}

// goodUnless is good, whose errors are swallowed too.
func (r *rig) goodUnless(s *device.Stream, b capture.Batch, params device.View, swallowed bool) error {
	err := r.good(s, b, params)
	if swallowed && errors.Is(err, device.ErrCapture) {
		return nil
	}
	return err
}

// A Release in a captured step is found, and ends the range; another one goes on.
func TestAReleaseInACapturedStep(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	var batch prefetch.Batch
	releases := true
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		if releases {
			releases = false
			batch.Release()
		}
		return s.Memset(r.w.View(), 0) // which needs no batch
	}
	step := r.step(capture.Options{})
	batch, err = rd.Next(t.Context())
	require.NoError(t, err)
	func() {
		defer func() {
			text, _ := recover().(string)
			require.Contains(t, text, "after its release")
		}()
		require.NoError(t, step.Run(batch, at(0)))
		t.Error("Run has returned")
	}()
	require.NoError(t, rd.Close())
	i := 0
	for b, err := range r.pf.All(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, device.ErrCapture)
			continue
		}
		require.NoError(t, step.Run(b, at(i)))
		i++
	}
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, step.Run(b, at(i)))
		i++
	}
	require.Equal(t, 9, i)
	r.close(step)
}

func TestARunInARun(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	var step *capture.Step[scalars]
	var batch prefetch.Batch
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		require.Equal(t, capture.ErrBusy, step.Run(batch, at(0)))
		return r.good(s, b, params)
	}
	step = r.step(capture.Options{})
	i := 0
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		batch = b
		require.NoError(t, step.Run(b, at(i)))
		i++
	}
	require.Equal(t, r.expected(30, 3, 10), r.digests(10))
	r.close(step)
}

// Close waits for a Run under way and for the device, and nothing is left, whoever closes
// first.
func TestCloses(t *testing.T) {
	step2 := func(r *rig, step *capture.Step[scalars], b prefetch.Batch) { require.NoError(r.t, step.Run(b, at(0))) }
	for name, end := range map[string]func(r *rig, step *capture.Step[scalars]){
		"the step": func(r *rig, step *capture.Step[scalars]) {
			require.NoError(r.t, step.Close())
			require.NoError(r.t, step.Close())
			require.NoError(r.t, r.pf.Close())
		},
		"the Prefetcher": func(r *rig, step *capture.Step[scalars]) {
			require.NoError(r.t, r.pf.Close())
			require.NoError(r.t, step.Close())
		},
		"both at once": func(r *rig, step *capture.Step[scalars]) {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { require.NoError(r.t, step.Close()) })
				wg.Go(func() { require.NoError(r.t, r.pf.Close()) })
			}
			wg.Wait()
		},
		"the stream": func(r *rig, step *capture.Step[scalars]) {
			require.NoError(r.t, r.compute.Close())
			require.NoError(r.t, step.Close())
			require.NoError(r.t, r.pf.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}, co: cpu.Options{Model: &cpu.Model{KernelLatency: time.Second / 100}}})
				step := r.step(capture.Options{})
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					step2(r, step, b)
				}
				end(r, step)
				require.NoError(t, errors.Join(r.w.Close(), r.log.Close(), r.compute.Close()))
				usage := r.dev.Usage()
				usage.Allocations = 0
				require.Zero(t, usage)
				require.NoError(t, r.dev.Close())
			})
		})
	}
}

func TestRunAfterClose(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	b, err := rd.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, step.Run(b, at(0)))
	require.NoError(t, step.Close())
	require.ErrorIs(t, step.Run(b, at(1)), capture.ErrClosed)
	b.Release()
	require.NoError(t, rd.Close())
	r.close(step)
	_, err = capture.New[scalars](r.pf, r.body, capture.Options{})
	require.ErrorIs(t, err, capture.ErrClosed)
}

// A batch that is held beyond its Prefetcher's Close stays valid; the Step does not.
func TestABatchThatOutlivesItsPrefetcher(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	rd, err := r.pf.Open(t.Context())
	require.NoError(t, err)
	b, err := rd.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, step.Run(b, at(0)))
	var left *prefetch.CloseError
	require.ErrorAs(t, r.pf.Close(), &left)
	require.NoError(t, left.Err)
	require.ErrorIs(t, step.Run(b, at(1)), capture.ErrClosed)
	require.Equal(t, 3, b.Len())
	b.Release()
	require.NoError(t, rd.Close())
	require.NoError(t, step.Close())
}

// Close waits five seconds. What it has to leave is freed when the device's work ends, or
// the Run under way does; the Prefetcher's Close waits for that as well.
func TestCloseThatHasToWait(t *testing.T) {
	type held struct {
		takes time.Duration // of the kernel in each step
		late  bool          // five seconds are too few
	}
	for name, h := range map[string]held{"3 s": {3 * time.Second, false}, "8 s": {8 * time.Second, true}} {
		for _, first := range []string{"step", "Prefetcher"} {
			t.Run(name+"/"+first, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, setting{n: 3, batch: 3, lo: loader.Options{Epochs: 1}, co: cpu.Options{Model: &cpu.Model{}}})
					r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
						return errors.Join(s.Launch(cpu.Busy(h.takes)), r.good(s, b, params))
					}
					step := r.step(capture.Options{})
					for b, err := range r.pf.All(t.Context()) {
						require.NoError(t, err)
						require.NoError(t, step.Run(b, at(0)))
					}
					begun := time.Now()
					var err error
					if first == "step" {
						err = step.Close()
					} else {
						err = r.pf.Close()
					}
					if !h.late {
						require.NoError(t, err)
						require.Equal(t, h.takes, time.Since(begun).Round(time.Millisecond))
					} else {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.Equal(t, 5*time.Second, time.Since(begun))
						require.EqualValues(t, 1, r.dev.Usage().Execs)
						time.Sleep(5 * time.Second)
						require.Zero(t, r.dev.Usage().Execs)
					}
					require.NoError(t, step.Close())
					require.NoError(t, r.pf.Close())
					require.NoError(t, errors.Join(r.w.Close(), r.log.Close(), r.compute.Close()))
					usage := r.dev.Usage()
					usage.Allocations = 0
					require.Zero(t, usage)
					require.NoError(t, r.dev.Close())
				})
			})
		}
	}
}

// Close beside a Run waits for it; in the step's own code it can't, and says so.
func TestCloseBesideARun(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, setting{n: 3, batch: 3, lo: loader.Options{Epochs: 1}})
			var step *capture.Step[scalars]
			closed := make(chan error, 1)
			begun := time.Now()
			r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
				if own {
					closed <- step.Close()
				} else {
					go func() { closed <- step.Close() }()
					time.Sleep(time.Second)
				}
				return r.good(s, b, params)
			}
			step = r.step(capture.Options{Launch: own})
			for b, err := range r.pf.All(t.Context()) {
				require.NoError(t, err)
				require.NoError(t, step.Run(b, at(0)))
				if own {
					require.ErrorIs(t, <-closed, context.DeadlineExceeded)
					require.Equal(t, 5*time.Second, time.Since(begun))
				} else {
					require.NoError(t, <-closed)
					require.Equal(t, time.Second, time.Since(begun))
				}
				require.ErrorIs(t, step.Run(b, at(1)), capture.ErrClosed)
			}
			synctest.Wait() // the reaper
			require.Equal(t, r.expected(3, 3, 1), r.digests(1))
			r.close(step)
		})
	}
}

// On a device that ends nothing hangs, and Run returns the device's error.
func TestADeviceThatEnds(t *testing.T) {
	for _, by := range []string{"fault", "close"} {
		t.Run(by, func(t *testing.T) {
			r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}})
			breaks := false
			fails := &device.Kernel{Name: "fails", Go: func(*device.Args) { panic(errOwn) }}
			r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
				if breaks {
					return launch(s, fails, func(*device.Args) {})
				}
				return r.good(s, b, params)
			}
			step := r.step(capture.Options{})
			rd, err := r.pf.Open(t.Context())
			require.NoError(t, err)
			for i := range 40 {
				b, err := rd.Next(t.Context())
				require.NoError(t, err)
				require.NoError(t, step.Run(b, at(i)))
				b.Release()
			}
			require.Positive(t, step.Report().Replays)
			b, err := rd.Next(t.Context())
			require.NoError(t, err)
			want := device.ErrFault
			if by == "close" {
				want = device.ErrClosed
				require.Error(t, r.dev.Close()) // with what is left
			} else {
				require.NoError(t, launch(r.compute, fails, func(*device.Args) {}))
				require.ErrorIs(t, r.compute.Synchronize(t.Context()), want)
			}
			require.ErrorIs(t, step.Run(b, at(40)), want)
			err = step.Close()
			if by == "close" {
				require.ErrorIs(t, err, want)
			} else {
				require.NoError(t, err)
			}
			require.NoError(t, step.Close())
			require.NotErrorIs(t, r.pf.Close(), context.DeadlineExceeded)
		})
	}
}

// A call of the device that fails, once, is Run's error. What was submitted of the step by
// then depends on the call; the next step is right.
func TestACallThatFails(t *testing.T) {
	for _, c := range []struct {
		op   devicetest.Op
		name string // of its stream
		nth  int64
	}{
		{devicetest.CopyH2D, "compute", 1}, {devicetest.CopyH2D, "compute", 25},
		{devicetest.BeginCapture, "", 1}, {devicetest.GraphNodes, "", 3},
		{devicetest.Instantiate, "", 1}, {devicetest.LaunchGraph, "", 1}, {devicetest.LaunchGraph, "", 30},
		{devicetest.Launch, "captured", 1}, {devicetest.NewStream, "", 1}, {devicetest.NewEvent, "", 1}, {devicetest.Alloc, "", 1}, {devicetest.AllocHost, "", 1},
	} {
		t.Run(c.op.String(), func(t *testing.T) {
			r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}})
			step := r.step(capture.Options{})
			armed := r.tap.Arm(devicetest.Rule{Op: c.op, Stream: c.name, Nth: c.nth, Err: errOwn})
			failed := 0
			i := 0
			for b, err := range r.pf.All(t.Context()) {
				require.NoError(t, err)
				for err := step.Run(b, at(i)); err != nil; err = step.Run(b, at(i)) {
					require.ErrorIs(t, err, errOwn)
					failed++
					require.Less(t, failed, 3)
				}
				i++
			}
			require.EqualValues(t, 1, armed.Fired())
			require.Equal(t, 1, failed)
			require.Equal(t, r.expected(300, 3, 100), r.digests(100))
			r.close(step)
		})
	}
}

// A graph that the driver does not free is freed by Close.
func TestAGraphThatIsNotFreed(t *testing.T) {
	r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	r.tap.Arm(devicetest.Rule{Op: devicetest.FreeGraph, Nth: 5, Err: errOwn})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(300, 3, steps), r.digests(steps))
	require.EqualValues(t, 1, r.dev.Usage().Graphs)
	r.close(step)
}

// A record without which nobody knows when the parameters' memory is free again ends the
// Step.
func TestAParameterRecordThatFails(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	r.tap.Arm(devicetest.Rule{Op: devicetest.Record, Event: "parameters", Nth: 2, Err: errOwn})
	i := 0
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, step.Run(b, at(i)))
		} else {
			require.ErrorIs(t, step.Run(b, at(i)), errOwn)
		}
		i++
	}
	r.close(step)
}

// Where the driver has no memory for a graph the step is launched.
func TestNoMemoryForGraphs(t *testing.T) {
	r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	r.tap.Arm(devicetest.Rule{Op: devicetest.Instantiate, Err: device.ErrOutOfMemory})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(300, 3, steps), r.digests(steps))
	report := step.Report()
	require.ErrorIs(t, report.Reason, device.ErrOutOfMemory)
	require.EqualValues(t, steps, report.Launches)
	r.close(step)
}

// Where pinned memory is refused the parameters come from other memory, and the report
// says so.
func TestNoPinnedMemoryForParameters(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	r.tap.Arm(devicetest.Rule{Op: devicetest.AllocHost, Nth: 1, Err: device.ErrOutOfMemory})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(30, 3, steps), r.digests(steps))
	require.Contains(t, step.Report().String(), "refused pinned memory")
	r.close(step)
}
