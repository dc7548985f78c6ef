package capture_test

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
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// changing is a step whose scalar is another one from a use on, and which then has a
// HostFunc too, if wanted.
func (r *rig) changing(use *int, from int, hostFunc bool) func(*device.Stream, capture.Batch, device.View) error {
	return func(s *device.Stream, b capture.Batch, params device.View) error {
		err := r.good(s, b, params)
		factor := float32(1)
		if *use >= from {
			factor = 2
			if hostFunc {
				err = errors.Join(err, s.HostFunc(func() {}))
			}
		}
		return errors.Join(err, launch(s, scale, func(a *device.Args) {
			r.log.View().Slice(8*1000, width*4).Out(a)
			r.w.View().In(a)
			a.AddFloat32(factor)
		}))
	}
}

// When a change is found at the second step, its capture is launched as a graph, once. If
// there is no memory for that, the step is launched call by call, and any other error is
// Run's.
func TestTheStepInWhichAChangeIsFound(t *testing.T) {
	for _, failure := range []error{nil, device.ErrOutOfMemory, errOwn} {
		r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
		i := 0
		r.submits = r.changing(&i, 1, false)
		step := r.step(capture.Options{})
		if failure != nil {
			r.tap.Arm(devicetest.Rule{Op: devicetest.Instantiate, Nth: 2, Err: failure})
		}
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			err := step.Run(b, at(i))
			if i == 1 && failure == errOwn {
				require.ErrorIs(t, err, errOwn)
				err = step.Run(b, at(i))
			}
			require.NoError(t, err)
			i++
		}
		report := step.Report()
		baked(t, report.Reason, "scale", 2)
		require.EqualValues(t, 2, report.Captures, "that in which it is found counts")
		launches := 8
		if failure != nil {
			launches = 9
		}
		require.EqualValues(t, launches, report.Launches)
		require.Equal(t, r.expected(30, 3, 10), r.digests(10))
		r.close(step)
	}
}

// Once graphs have been replayed a change ends the run, also where the step as it is now
// could not have been captured.
func TestAChangeToWhatCanNotBeCompared(t *testing.T) {
	r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}})
	i := 0
	r.submits = r.changing(&i, 56, true)
	step := r.step(capture.Options{})
	var failure error
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		if failure = step.Run(b, at(i)); failure != nil {
			break
		}
		i++
	}
	var changed *capture.ChangedError
	require.ErrorAs(t, failure, &changed)
	require.Positive(t, changed.Replays)
	require.NoError(t, step.Report().Reason)
	r.close(step)
}

// A body that fails has not been captured.
func TestAFailedBodyIsNoCapture(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	r.submits = func(*device.Stream, capture.Batch, device.View) error { return errOwn }
	step := r.step(capture.Options{})
	_, err := r.train(step, 0, -1)
	require.Equal(t, errOwn, err)
	require.Zero(t, step.Report().Captures)
	r.close(step)
}

// A capture that failed is told of even if the launch in its place fails too; and a device
// that has no graphs is asked for one once.
func TestCapturesThatFailAreCounted(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	r.submits = func(s *device.Stream, _ capture.Batch, _ device.View) error {
		if capturing, err := s.Capturing(); err != nil || !capturing {
			return errOwn
		}
		_, err := r.dev.Alloc(8)
		return err
	}
	step := r.step(capture.Options{})
	_, err := r.train(step, 0, -1)
	require.Equal(t, errOwn, err)
	require.EqualValues(t, 1, step.Report().Failures)
	require.ErrorContains(t, step.Report().Failure, "Alloc")
	r.close(step)

	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	r = newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}, driver: noGraphs{drv}})
	step = r.step(capture.Options{})
	_, err = r.train(step, 0, -1)
	require.NoError(t, err)
	require.EqualValues(t, 1, step.Report().Failures)
	r.close(step)
}

// Close waits for a step that has no parameters too, whether it was launched as a graph, as a
// capture that differs, or call by call.
func TestCloseWaitsForStepsWithoutParameters(t *testing.T) {
	for name, steps := range map[string]int{"a graph": 1, "a capture that differs": 2, "launches": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, setting{n: 9, batch: 3, lo: loader.Options{Epochs: 1}, co: cpu.Options{Model: &cpu.Model{}}})
				i := 0
				body := func(s *device.Stream, _ capture.Batch, _ device.View) error {
					// Only the last one takes its time.
					return s.Launch(cpu.Busy(time.Duration(max(0, i-steps+2)) * time.Second))
				}
				step, err := capture.New[struct{}](r.pf, body, capture.Options{Launch: steps == 3})
				require.NoError(t, err)
				begun := time.Now()
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					require.NoError(t, step.Run(b, struct{}{}))
					if i++; i == steps {
						break
					}
				}
				require.NoError(t, step.Close())
				require.Equal(t, time.Second, time.Since(begun))
				r.close()
			})
		})
	}
}

// An error of the device in Close is that, and not that steps go on.
func TestAnErrorInClose(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	step := r.step(capture.Options{})
	_, err := r.train(step, 0, -1)
	require.NoError(t, err)
	r.tap.Arm(devicetest.Rule{Op: devicetest.FreeExec, Nth: 1, Err: errOwn})
	err = step.Close()
	require.ErrorIs(t, err, errOwn)
	require.NotContains(t, err.Error(), "under way")
}

func TestANodeErrorNamesItsKernelOrItsCall(t *testing.T) {
	require.EqualError(t, &capture.NodeError{Node: 2, Op: "Launch", Kernel: "k", Why: "why"}, `capture: node 2, kernel "k": why`)
	require.EqualError(t, &capture.NodeError{Node: 2, Op: "CopyH2D", Why: "why"}, "capture: node 2, CopyH2D: why")
}

// Where only one graph is kept, that one is replayed, and batches in other places are
// submitted call by call.
func TestTheGraphsThatAreKeptAreReplayed(t *testing.T) {
	r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}, po: prefetch.Options{Depth: 2, BatchesPerCopy: 1}})
	step := r.step(capture.Options{Graphs: 1})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(300, 3, steps), r.digests(steps))
	report := step.Report()
	require.Equal(t, 1, report.Graphs)
	require.Positive(t, report.Replays)
	require.EqualValues(t, steps/2, report.Launches)
	r.close(step)
}

// The lengths of ragged fields may be scalars of a launch, also where two fields together
// have equally many bytes in each batch: each has graphs of its own.
func TestLengthsOfRaggedFieldsMayBeScalars(t *testing.T) {
	const n, most = 400, 8
	fields := []loader.Field{
		{Name: "x", DType: dtype.Uint8, Shape: []int{most}, Ragged: &loader.Ragged{}},
		{Name: "y", DType: dtype.Uint8, Shape: []int{most}, Ragged: &loader.Ragged{}},
	}
	data := loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		of := i / 3 % most
		clear(row.Bytes("x"))
		clear(row.Bytes("y"))
		return errors.Join(row.SetLen("x", 1+of), row.SetLen("y", most-of))
	})
	sizes := &device.Kernel{Name: "sizes", Go: func(a *device.Args) {
		device.Elements[uint64](a, 0)[device.Elements[scalars](a, 1)[0].Step] = uint64(a.Int32(2))<<32 | uint64(a.Int32(3))
	}}
	r := newRig(t, setting{data: data, batch: 3, lo: loader.Options{Epochs: 1, Last: loader.Drop}, po: prefetch.Options{Depth: 1, BatchesPerCopy: 1}})
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		return launch(s, sizes, func(a *device.Args) {
			r.log.View().InOut(a)
			params.In(a)
			a.AddInt32(int32(b.Field("x").View.Size()))
			a.AddInt32(int32(b.Field("y").View.Size()))
		})
	}
	step := r.step(capture.Options{})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.NoError(t, step.Report().Reason)
	require.Positive(t, step.Report().Replays)
	require.Equal(t, most, step.Report().Graphs)
	for i, got := range r.digests(steps) {
		of := uint64(i % most)
		require.Equal(t, 3*(1+of)<<32|3*(most-of), got, "step %d", i)
	}
	r.close(step)
}
