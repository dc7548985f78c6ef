package capture_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
	"github.com/leat-go/leat/prefetch/chain"
)

// scaled is the step with a scalar that it is launched with: x is scaled first.
func (r *rig) scaled(scratch device.View, factor func() float32) func(*device.Stream, capture.Batch, device.View) error {
	return func(s *device.Stream, b capture.Batch, params device.View) error {
		x := b.Field("x").View
		scaled := scratch.Slice(0, x.Size())
		err := launch(s, scale, func(a *device.Args) {
			scaled.Out(a)
			x.In(a)
			a.AddFloat32(factor())
		})
		return errors.Join(err, launch(s, update, func(a *device.Args) {
			r.w.View().InOut(a)
			scaled.In(a)
			params.In(a)
		}), launch(s, note, func(a *device.Args) {
			r.log.View().InOut(a)
			r.w.View().In(a)
			params.In(a)
		}))
	}
}

func (r *rig) scratch(bytes int64) *device.Buffer {
	b, err := r.dev.Alloc(bytes)
	require.NoError(r.t, err)
	return b
}

// logOf is the log of a run with steps launched call by call, for comparison.
func logOf(t *testing.T, c setting, steps int, submits func(r *rig, step *int) (func(*device.Stream, capture.Batch, device.View) error, *device.Buffer)) []uint64 {
	r := newRig(t, c)
	n := 0
	var buffer *device.Buffer
	r.submits, buffer = submits(r, &n)
	step := r.step(capture.Options{Launch: true})
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, step.Run(b, at(n)))
		n++
		if n == steps {
			break
		}
	}
	require.ErrorContains(t, step.Report().Reason, "Options.Launch")
	require.Zero(t, step.Report().Captures)
	log := r.digests(n)
	require.NoError(t, step.Close())
	require.NoError(t, buffer.Close())
	r.close()
	return log
}

// A learning rate that is a scalar of a launch, and changes after some hundred steps, or at
// every step as Adam's count does: the step is launched call by call, or the run ends with
// the kernel, the argument and both values, before a sixteenth of the steps went wrong. What
// came before is right.
func TestAScalarThatIsBakedIn(t *testing.T) {
	const steps, batch, changes = 200, 4, 104
	c := setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1, Shuffle: true}, co: cpu.Options{Adversary: unkind()}}
	for name, rate := range map[string]func(step int) float32{
		"a schedule": func(step int) float32 {
			if step < changes {
				return 1
			}
			return 0.1
		},
		"a count": func(step int) float32 { return 1 + 1/float32(step+1) },
	} {
		for _, checked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/checked=%v", name, checked), func(t *testing.T) {
				submits := func(r *rig, n *int) (func(*device.Stream, capture.Batch, device.View) error, *device.Buffer) {
					b := r.scratch(batch * width * 4)
					return r.scaled(b.View(), func() float32 { return rate(*n) }), b
				}
				want := logOf(t, c, steps, submits)
				c := c
				c.checked = checked
				r := newRig(t, c)
				n := 0
				var scratch *device.Buffer
				r.submits, scratch = submits(r, &n)
				step := r.step(capture.Options{})
				var failure error
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					if failure = step.Run(b, at(n)); failure != nil {
						require.Equal(t, failure, step.Run(b, at(n)), "and from then on")
						break
					}
					n++
				}
				report := step.Report()
				if name == "a count" {
					require.NoError(t, failure)
					require.Equal(t, want, r.digests(n))
					baked(t, report.Reason, "scale", 2)
					require.Zero(t, report.Replays)
					require.EqualValues(t, steps-2, report.Launches)
				} else {
					var changed *capture.ChangedError
					require.ErrorAs(t, failure, &changed)
					d := baked(t, failure, "scale", 2)
					require.Contains(t, d.Was, "float32 1)")
					require.Contains(t, d.Is, "float32 0.1)")
					require.ErrorContains(t, failure, `kernel "scale": argument 2`)
					require.Equal(t, n, changed.Position.Batch)
					if checked {
						require.Equal(t, changes, n)
					} else {
						require.Positive(t, changed.Replays)
						require.LessOrEqual(t, n, changes+changes/16+1)
						require.LessOrEqual(t, n-changes, int(changed.Replays))
					}
					require.Equal(t, want[:changes], r.digests(changes))
				}
				require.NoError(t, step.Close())
				require.NoError(t, scratch.Close())
				r.close()
			})
		}
	}
}

// Something that is done every so many steps, as an update after accumulated gradients, is
// found before it is missed once, or soon: either all steps are right, or the run ends.
func TestWorkOfEverySoManySteps(t *testing.T) {
	const batch = 2
	periods := []int{20, 25, 32, 50, 64, 100, 128}
	for p := 2; p <= 16; p++ {
		periods = append(periods, p)
	}
	for _, period := range periods {
		for _, from := range []int{0, 1} {
			t.Run(fmt.Sprintf("period=%d/from=%d", period, from), func(t *testing.T) {
				steps := 4 * period
				c := setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}}
				submits := func(r *rig, n *int) (func(*device.Stream, capture.Batch, device.View) error, *device.Buffer) {
					b := r.scratch(width * 4)
					return func(s *device.Stream, batch capture.Batch, params device.View) error {
						err := r.good(s, batch, params)
						if (*n+from)%period == 0 {
							err = errors.Join(err, s.Memset(r.w.View(), 0))
						}
						return err
					}, b
				}
				want := logOf(t, c, steps, submits)
				r := newRig(t, c)
				n := 0
				var scratch *device.Buffer
				r.submits, scratch = submits(r, &n)
				step := r.step(capture.Options{})
				var failure error
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					if failure = step.Run(b, at(n)); failure != nil {
						break
					}
					n++
				}
				if period <= 16 {
					require.NoError(t, failure)
					require.Zero(t, step.Report().Replays)
				}
				if failure == nil {
					require.Equal(t, want, r.digests(steps))
					failure = step.Report().Reason
				}
				var changed *capture.ChangedError
				require.ErrorAs(t, failure, &changed)
				require.True(t, changed.Difference.Shape)
				require.NoError(t, step.Close())
				require.NoError(t, scratch.Close())
				r.close()
			})
		}
	}
}

// Of a step's Go code only the submissions are replayed. A counter counts captures; a
// buffer chosen by the batch's number is found though each slot sees even numbers alone; a
// HostFunc closes over something else each time. Three epochs, with a Restore in between,
// are right all the same.
func TestHostCodeInAStep(t *testing.T) {
	const batch, perEpoch, epochs = 2, 40, 3
	for _, what := range []string{"counter", "buffer", "HostFunc"} {
		t.Run(what, func(t *testing.T) {
			c := setting{n: batch * perEpoch, batch: batch, lo: loader.Options{Epochs: epochs},
				po: prefetch.Options{Depth: 4}, co: cpu.Options{Adversary: unkind()}}
			r := newRig(t, c)
			scratch := r.scratch(2 * batch * width * 4)
			n, counter := 0, 0
			var noted []int
			r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
				counter++
				x := b.Field("x").View
				half := scratch.View().Slice(0, x.Size())
				if what == "buffer" && n%2 == 1 {
					half = scratch.View().Slice(x.Size(), x.Size())
				}
				err := s.CopyD2D(half, x)
				if what == "HostFunc" {
					number := n
					err = errors.Join(err, s.HostFunc(func() { noted = append(noted, number) }))
				}
				return errors.Join(err, launch(s, update, func(a *device.Args) {
					r.w.View().InOut(a)
					half.In(a)
					params.In(a)
				}), launch(s, note, func(a *device.Args) {
					r.log.View().InOut(a)
					r.w.View().In(a)
					params.In(a)
				}))
			}
			step := r.step(capture.Options{})
			for n < perEpoch*epochs {
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					require.NoError(t, step.Run(b, at(n)))
					n++
					if n == 55 {
						break
					}
				}
				if n == 55 {
					require.NoError(t, r.pf.Restore(r.pf.State()))
				}
			}
			require.Equal(t, r.expected(batch*perEpoch, batch, n), r.digests(n))
			report := step.Report()
			switch what {
			case "counter":
				require.NoError(t, report.Reason)
				require.EqualValues(t, counter, report.Captures)
				require.EqualValues(t, n, report.Captures+report.Replays)
			case "buffer":
				var changed *capture.ChangedError
				require.ErrorAs(t, report.Reason, &changed)
				require.Equal(t, "CopyD2D", changed.Difference.Op)
				require.Equal(t, "the destination", changed.Difference.What)
				require.Zero(t, changed.Replays)
				require.Equal(t, 1, changed.Position.Batch)
			case "HostFunc":
				var node *capture.NodeError
				require.ErrorAs(t, report.Reason, &node)
				require.Equal(t, "HostFunc", node.Op)
				require.Len(t, noted, n)
				for i, number := range noted {
					require.Equal(t, i, number)
				}
			}
			require.NoError(t, step.Close())
			require.NoError(t, scratch.Close())
			r.close()
		})
	}
}

// A step that uploads from host memory which its next user fills with something else, as
// memory of a pool: no step sees that.
func TestAnUploadFromHostMemory(t *testing.T) {
	const batch, steps = 2, 100
	r := newRig(t, setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}})
	table := r.scratch(batch * width * 4)
	host, err := r.dev.AllocHost(table.Size(), device.HostOptions{})
	require.NoError(t, err)
	n := 0
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		values := dtype.As[float32](host.Bytes())
		for i := range values {
			values[i] = float32(n)
		}
		return errors.Join(s.CopyH2D(table.View(), host.Bytes()), launch(s, update, func(a *device.Args) {
			r.w.View().InOut(a)
			table.View().In(a)
			params.In(a)
		}), launch(s, note, func(a *device.Args) {
			r.log.View().InOut(a)
			r.w.View().In(a)
			params.In(a)
		}))
	}
	step := r.step(capture.Options{})
	w := make([]float32, width)
	var want []uint64
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, step.Run(b, at(n)))
		require.NoError(t, r.compute.Synchronize(t.Context()))
		for i := range host.Bytes() {
			host.Bytes()[i] = 0xee // somebody else's
		}
		x := make([]float32, batch*width)
		for i := range x {
			x[i] = float32(n)
		}
		advance(w, x, at(n))
		want = append(want, digest(w))
		n++
	}
	require.Equal(t, want, r.digests(n))
	var node *capture.NodeError
	require.ErrorAs(t, step.Report().Reason, &node)
	require.Equal(t, "CopyH2D", node.Op)
	require.Contains(t, step.Report().String(), "the same host memory")
	require.NoError(t, step.Close())
	require.NoError(t, errors.Join(table.Close(), host.Close()))
	r.close()
}

// The library's own random crop depends on the batch's position. In a step that shows, and
// the step is launched call by call; in a Transform it is no part of the step. The pictures
// are the same.
func TestACropInAStepAndInATransform(t *testing.T) {
	const batch, perEpoch, side = 4, 20, 6
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{side, side, 1}}}
	data := loader.FromFunc(batch*perEpoch, fields, func(_ context.Context, i int, row *loader.Row) error {
		for j, x := 0, row.Bytes("x"); j < len(x); j++ {
			x[j] = byte(i*7 + j)
		}
		return nil
	})
	c := setting{data: data, batch: batch, lo: loader.Options{Epochs: 3, Seed: 9, Shuffle: true}, co: cpu.Options{Adversary: unkind()}}
	train := func(c setting, crop bool) ([]uint64, capture.Report) {
		r := newRig(t, c)
		cropped := r.scratch(batch * 4 * 4)
		var position prefetch.Position
		r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
			x := b.Field("x").View
			var err error
			if crop {
				err = kernels.Crop(s, cropped.View(), x, kernels.CropParams{Height: side, Width: side, OutHeight: 4, OutWidth: 4, PixelBytes: 1,
					Seed: 9, Epoch: uint64(position.Epoch), Position: uint64(position.First)})
				x = cropped.View()
			}
			return errors.Join(err, launch(s, updateBytes, func(a *device.Args) {
				r.w.View().InOut(a)
				x.In(a)
				params.In(a)
			}), launch(s, note, func(a *device.Args) {
				r.log.View().InOut(a)
				r.w.View().In(a)
				params.In(a)
			}))
		}
		step := r.step(capture.Options{})
		n := 0
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			position = b.Position()
			require.NoError(t, step.Run(b, at(n)))
			n++
		}
		require.Equal(t, 3*perEpoch, n)
		log, report := r.digests(n), step.Report()
		require.NoError(t, step.Close())
		require.NoError(t, cropped.Close())
		r.close()
		return log, report
	}
	inStep, report := train(c, true)
	baked(t, report.Reason, "crop", 13)
	require.Zero(t, report.Replays)
	transform, err := chain.New(fields, chain.Crop("x", 4, 4, chain.CropOptions{}))
	require.NoError(t, err)
	c.po.Transform = transform
	before, report := train(c, false)
	require.NoError(t, report.Reason)
	require.Positive(t, report.Replays)
	require.Equal(t, inStep, before)
}

// A download is work with host memory as an upload is.
func TestADownloadToHostMemory(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}})
	host, err := r.dev.AllocHost(r.w.Size(), device.HostOptions{})
	require.NoError(t, err)
	r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
		return errors.Join(r.good(s, b, params), s.CopyD2H(host.Bytes(), r.w.View()))
	}
	step := r.step(capture.Options{})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	log := r.digests(steps)
	require.Equal(t, r.expected(30, 3, steps), log)
	require.Equal(t, log[steps-1], digest(dtype.As[float32](host.Bytes())))
	var node *capture.NodeError
	require.ErrorAs(t, step.Report().Reason, &node)
	require.Equal(t, "CopyD2H", node.Op)
	require.NoError(t, step.Close())
	require.NoError(t, host.Close())
	r.close()
}

// What becomes of a change depends on whether a graph was replayed since captures agreed:
// behind a comparison, at another one, nothing was, and the step is launched from there on,
// all of it right. With the order checked a run ends where it would without, or before.
func TestWhenAChangeIsFound(t *testing.T) {
	const steps, batch = 160, 2
	for _, c := range []struct {
		at      int // the step, from 0: use at+1
		checked bool
		ends    int // the step at which the run ends, -1 if it does not
	}{
		{100, false, -1}, // uses 100 and 101 are both compared
		{100, true, -1},
		{127, false, 127}, // use 128 is compared, the one before is not
		{127, true, 127},
		{129, true, 129}, // use 129 is compared, 130 only by the checker
	} {
		t.Run(fmt.Sprintf("step=%d/checked=%v", c.at, c.checked), func(t *testing.T) {
			r := newRig(t, setting{n: batch * steps, batch: batch, lo: loader.Options{Epochs: 1}, checked: c.checked})
			n := 0
			scratch := r.scratch(batch * width * 4)
			r.submits = r.scaled(scratch.View(), func() float32 {
				if n < c.at {
					return 1
				}
				return 2
			})
			step := r.step(capture.Options{})
			ends := -1
			for b, err := range r.pf.All(t.Context()) {
				require.NoError(t, err)
				if err := step.Run(b, at(n)); err != nil {
					baked(t, err, "scale", 2)
					ends = n
					break
				}
				n++
			}
			require.Equal(t, c.ends, ends)
			if ends < 0 {
				baked(t, step.Report().Reason, "scale", 2)
				require.EqualValues(t, steps-c.at-1, step.Report().Launches)
			}
			require.NoError(t, step.Close())
			require.NoError(t, scratch.Close())
			r.close()
		})
	}
}
