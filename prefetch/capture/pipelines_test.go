package capture_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// sum writes a digest of a batch, and of how many rows of it count, to its place in a log.
var sum = &device.Kernel{Name: "sum", Go: func(a *device.Args) {
	log, x, p := device.Elements[uint64](a, 0), a.Bytes(1), device.Elements[scalars](a, 2)[0]
	log[p.Step] = digestBytes(x, int(a.Int32(3)))
}}

func digestBytes(x []byte, rows int) uint64 {
	d := uint64(rows) + 1
	for _, v := range x {
		d = d*1_000_003 + uint64(v) + 1
	}
	return d
}

// sums is a step that depends on its batch alone.
func (r *rig) sums(s *device.Stream, b capture.Batch, params device.View) error {
	return launch(s, sum, func(a *device.Args) {
		r.log.View().InOut(a)
		b.Field("x").View.In(a)
		params.In(a)
		a.AddInt32(int32(b.Valid()))
	})
}

// seen are the digests of what is in batches, by downloads before the step.
func (r *rig) seen(b prefetch.Batch) uint64 {
	v := b.Field("x").View
	host, err := r.dev.AllocHost(v.Size(), device.HostOptions{})
	require.NoError(r.t, err)
	require.NoError(r.t, b.Stream().CopyD2H(host.Bytes(), v))
	require.NoError(r.t, b.Stream().Synchronize(r.t.Context()))
	d := digestBytes(host.Bytes(), b.Valid())
	require.NoError(r.t, host.Close())
	return d
}

// With several compute streams each has graphs of its own. With the order of everything
// checked the digests, which go to one buffer by several streams, would be races: there
// each stream has a buffer.
func TestSeveralComputeStreams(t *testing.T) {
	for _, checked := range []bool{false, true} {
		r := newRig(t, setting{n: 600, batch: 3, lo: loader.Options{Epochs: 1, Shuffle: true}, checked: checked,
			po: prefetch.Options{Depth: 4, Streams: prefetch.Streams{Compute: 3, RoundRobin: true}}, co: cpu.Options{Adversary: unkind()}})
		logs := map[*device.Stream]*device.Buffer{}
		var compute *device.Stream // of the batch
		r.submits = func(s *device.Stream, b capture.Batch, params device.View) error {
			return launch(s, sum, func(a *device.Args) {
				logs[compute].View().InOut(a)
				b.Field("x").View.In(a)
				params.In(a)
				a.AddInt32(int32(b.Valid()))
			})
		}
		step := r.step(capture.Options{})
		var want []uint64
		var on []*device.Stream
		for b, err := range r.pf.All(t.Context()) {
			require.NoError(t, err)
			if compute = b.Stream(); logs[compute] == nil {
				logs[compute] = r.scratch(logged * 8)
			}
			want, on = append(want, r.seen(b)), append(on, compute)
			require.NoError(t, step.Run(b, at(len(want)-1)))
		}
		require.NoError(t, r.dev.Synchronize(t.Context()))
		require.Len(t, logs, 3)
		got := map[*device.Stream][]uint64{}
		for s, log := range logs {
			r := *r
			r.log = log
			got[s] = r.digests(len(want))
		}
		for i := range want {
			require.Equal(t, want[i], got[on[i]][i], "step %d", i)
		}
		report := step.Report()
		require.NoError(t, report.Reason)
		require.Equal(t, !checked, report.Replays > 0)
		require.NoError(t, step.Close())
		for _, log := range logs {
			require.NoError(t, log.Close())
		}
		r.close()
	}
}

// Two Steps on one pipeline, each in a goroutine that takes batches from a third: captures
// go on beside each other, and beside Next and Release.
func TestTwoStepsAtOnce(t *testing.T) {
	const n, batch = 1200, 3
	for _, checked := range []bool{false, true} {
		r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: 1}, checked: checked,
			po: prefetch.Options{Depth: 6}, co: cpu.Options{Adversary: unkind()}})
		type item struct {
			b prefetch.Batch
			i int
		}
		batches := make(chan item)
		logs := []*device.Buffer{r.scratch(logged * 8), r.scratch(logged * 8)}
		took := make([][]int, 2)
		var wg sync.WaitGroup
		steps := make([]*capture.Step[scalars], 2)
		for k := range steps {
			var err error
			steps[k], err = capture.New[scalars](r.pf, func(s *device.Stream, b capture.Batch, params device.View) error {
				return launch(s, sum, func(a *device.Args) {
					logs[k].View().InOut(a)
					b.Field("x").View.In(a)
					params.In(a)
					a.AddInt32(int32(b.Valid()))
				})
			}, capture.Options{})
			require.NoError(t, err)
			wg.Go(func() {
				for it := range batches {
					if err := steps[k].Run(it.b, at(it.i)); err != nil {
						t.Error(err)
					}
					took[k] = append(took[k], it.i)
					it.b.Release()
				}
			})
		}
		rd, err := r.pf.Open(t.Context())
		require.NoError(t, err)
		i := 0
		for ; ; i++ {
			b, err := rd.WaitNext(t.Context())
			if errors.Is(err, prefetch.ErrEpochEnd) {
				break
			}
			require.NoError(t, err)
			batches <- item{b, i}
		}
		close(batches)
		wg.Wait()
		require.NoError(t, rd.Close())
		require.Equal(t, n/batch, i)
		for k, log := range logs {
			r := *r
			r.log = log
			got := r.digests(i)
			for _, at := range took[k] {
				require.Equal(t, r.plainSum(at, batch), got[at], "step %d of %d", at, k)
			}
			require.NoError(t, steps[k].Report().Reason)
			require.Zero(t, steps[k].Report().Failures)
		}
		require.Equal(t, i, len(took[0])+len(took[1]))
		require.NoError(t, errors.Join(steps[0].Close(), steps[1].Close(), logs[0].Close(), logs[1].Close()))
		r.close()
	}
}

// plainSum is the digest of a batch of samples in their order.
func (r *rig) plainSum(k, batch int) uint64 {
	var x []float32
	for i := k * batch; i < (k+1)*batch; i++ {
		for j := range width {
			x = append(x, value(i, j))
		}
	}
	return digestBytes(dtype.Bytes(x), batch)
}

// Ragged batches have a graph for each length, and a padded last batch for its number of
// rows that count.
func TestRaggedAndPaddedBatches(t *testing.T) {
	fields := []loader.Field{
		{Name: "x", DType: dtype.Uint8, Shape: []int{12}, Ragged: &loader.Ragged{Multiple: 4, Length: "lengths"}},
		{Name: "packed", DType: dtype.Uint8, Shape: []int{3}, Ragged: &loader.Ragged{Offsets: "offsets"}},
	}
	const n, batch, epochs = 43, 4, 8
	data := loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		for field, n := range map[string]int{"x": i % 13, "packed": i % 4} {
			for j, x := 0, row.Bytes(field)[:n]; j < n; j++ {
				x[j] = byte(i + j)
			}
			if err := row.SetLen(field, n); err != nil {
				return err
			}
		}
		return nil
	})
	for _, graphs := range []int{0, 5} {
		for _, checked := range []bool{false, true} {
			t.Run(fmt.Sprintf("graphs=%d/checked=%v", graphs, checked), func(t *testing.T) {
				r := newRig(t, setting{data: data, batch: batch, checked: checked, co: cpu.Options{Adversary: unkind()},
					lo: loader.Options{Epochs: epochs, Last: loader.Pad}, po: prefetch.Options{Depth: 2, BatchesPerCopy: 2}})
				r.submits = r.sums
				step := r.step(capture.Options{Graphs: graphs})
				var want []uint64
				short := 0
				for b, err := range r.pf.All(t.Context()) {
					require.NoError(t, err)
					if b.Valid() < b.Len() {
						short++
					}
					want = append(want, r.seen(b))
					require.NoError(t, step.Run(b, at(len(want)-1)))
				}
				require.Equal(t, epochs, short)
				require.Equal(t, want, r.digests(len(want)))
				report := step.Report()
				require.NoError(t, report.Reason)
				if graphs == 0 {
					require.Zero(t, report.Launches)
					require.Equal(t, !checked, report.Replays > 0)
				} else {
					require.Equal(t, graphs, report.Graphs)
					require.Positive(t, report.Launches)
					require.Contains(t, report.String(), "no room for more graphs")
				}
				r.close(step)
			})
		}
	}
}

// A padded last batch has as many rows as others, of which fewer count: it has graphs of
// its own, so that the number may be a scalar.
func TestPaddedBatches(t *testing.T) {
	const n, batch, epochs = 35, 4, 20
	r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: epochs, Last: loader.Pad}, po: prefetch.Options{Depth: 2}})
	r.submits = r.sums
	step := r.step(capture.Options{})
	var want []uint64
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		want = append(want, r.seen(b))
		require.NoError(t, step.Run(b, at(len(want)-1)))
	}
	require.Len(t, want, 9*epochs)
	require.Equal(t, want, r.digests(len(want)))
	require.NoError(t, step.Report().Reason)
	require.Equal(t, 4, step.Report().Graphs)
	require.Positive(t, step.Report().Replays)
	r.close(step)
}

// A Step without parameters.
func TestAStepWithoutParameters(t *testing.T) {
	r := newRig(t, setting{n: 300, batch: 3, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}, checked: true})
	one := r.scratch(8)
	require.NoError(t, r.compute.Memset(one.View(), 0))
	counts := &device.Kernel{Name: "count", Go: func(a *device.Args) { device.Elements[uint64](a, 0)[0]++ }}
	step, err := capture.New[struct{}](r.pf, func(s *device.Stream, b capture.Batch, params device.View) error {
		require.Zero(t, params.Size())
		if _, ok := b.Lookup("x"); !ok {
			return errors.New("no x")
		}
		if _, ok := b.Lookup("y"); ok {
			return errors.New("a y")
		}
		return launch(s, counts, func(a *device.Args) { one.View().InOut(a) })
	}, capture.Options{})
	require.NoError(t, err)
	for b, err := range r.pf.All(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, step.Run(b, struct{}{}))
	}
	require.NoError(t, r.compute.CopyD2D(r.log.View().Slice(0, 8), one.View()))
	require.Equal(t, []uint64{100}, r.digests(1))
	require.NoError(t, errors.Join(step.Close(), one.Close()))
	r.close()
}

// noGraphs is a driver without graphs.
type noGraphs struct{ driver.Device }

func TestADeviceWithoutGraphs(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}, driver: noGraphs{drv}})
	step := r.step(capture.Options{})
	steps, err := r.train(step, 0, -1)
	require.NoError(t, err)
	require.Equal(t, r.expected(30, 3, steps), r.digests(steps))
	require.ErrorIs(t, step.Report().Reason, device.ErrUnsupported)
	require.Equal(t, steps, r.bodies)
	r.close(step)
}

// A kernel that the device can't run is the step's own error, as without a capture.
func TestAKernelWithoutAForm(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3, lo: loader.Options{Epochs: 1}})
	other := &device.Kernel{Name: "other", Module: &device.Module{Name: "other", PTX: "…"}}
	r.submits = func(s *device.Stream, _ capture.Batch, _ device.View) error {
		return launch(s, other, func(*device.Args) {})
	}
	step := r.step(capture.Options{})
	_, err := r.train(step, 0, -1)
	require.ErrorIs(t, err, device.ErrUnsupported)
	require.NoError(t, step.Report().Reason)
	r.close(step)
}

func TestMistakes(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3})
	host, err := prefetch.NewHost(r.ld, prefetch.Options{})
	require.NoError(t, err)
	_, err = capture.New[scalars](host, r.body, capture.Options{})
	require.ErrorContains(t, err, "there are no graphs of host memory")
	require.ErrorIs(t, err, device.ErrInvalid)
	require.NoError(t, host.Close())

	type inner struct {
		Name string
		N    int
	}
	_, err = capture.New[struct {
		A uintptr
		B [2]inner
		C *float32
	}](nil, nil, capture.Options{Graphs: -1})
	for _, part := range []string{"Graphs is -1", "pf is nil", "body is nil", ".A is uintptr", ".B[0].Name is string", ".B[0].N is int", ".C is *float32"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorIs(t, err, device.ErrInvalid)
	_, err = capture.New[*int](r.pf, r.body, capture.Options{})
	require.ErrorIs(t, err, device.ErrInvalid)
	for _, fits := range []func() error{
		func() error { return made[[3]uint64](r) }, func() error { return made[float64](r) }, func() error { return made[bool](r) },
		func() error { return made[[0]int32](r) }, func() error { return made[complex128](r) },
	} {
		require.NoError(t, fits())
	}
	r.close()
}

func made[P any](r *rig) error {
	s, err := capture.New[P](r.pf, r.body, capture.Options{})
	if err != nil {
		return err
	}
	return s.Close()
}

// In a Map's step the place of the result is not the batch's: a step that writes there is
// launched, and the results are right.
func TestAStepInAMap(t *testing.T) {
	const n, batch = 300, 3
	r := newRig(t, setting{n: n, batch: batch, lo: loader.Options{Epochs: 1}, co: cpu.Options{Adversary: unkind()}, checked: true})
	var out prefetch.Fields
	r.submits = func(s *device.Stream, b capture.Batch, _ device.View) error {
		return launch(s, scale, func(a *device.Args) {
			out.Field("x").View.Out(a)
			b.Field("x").View.In(a)
			a.AddFloat32(2)
		})
	}
	step := r.step(capture.Options{})
	fields := []loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{width}}}
	i := 0
	for result, err := range r.pf.Map(t.Context(), prefetch.Output{Fields: fields}, func(b prefetch.Batch, to prefetch.Fields) error {
		out = to
		return step.Run(b, scalars{})
	}) {
		require.NoError(t, err)
		x, err := prefetch.Column[float32](result, "x")
		require.NoError(t, err)
		for k, v := range x {
			require.Equal(t, 2*value(i*batch+k/width, k%width), v)
		}
		i++
	}
	require.Equal(t, n/batch, i)
	baked(t, step.Report().Reason, "scale", 0)
	r.close(step)
}

// A Step's graphs have the addresses of its own pipeline's memory, which closes it before
// that is freed. Another one's batch is refused, so that it can free its memory too.
func TestABatchOfAnotherPrefetcher(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3})
	step := r.step(capture.Options{})
	other, err := prefetch.New(r.compute, r.ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range other.Batches(t.Context()) {
		require.NoError(t, err)
		err = step.Run(b, at(0))
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, "another Prefetcher")
	}
	require.NoError(t, other.Close())
	_, err = r.train(step, 0, 4)
	require.NoError(t, err)
	require.EqualValues(t, 4, step.Report().Captures)
	r.close(step)
}

func TestABatchInHostMemory(t *testing.T) {
	r := newRig(t, setting{n: 30, batch: 3})
	step := r.step(capture.Options{})
	host, err := prefetch.NewHost(r.ld, prefetch.Options{})
	require.NoError(t, err)
	for b, err := range host.Batches(t.Context()) {
		require.NoError(t, err)
		require.ErrorIs(t, step.Run(b, at(0)), device.ErrInvalid)
	}
	require.NoError(t, host.Close())
	r.close(step)
}
