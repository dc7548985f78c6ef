package capture_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/order"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
)

// scalars are what changes from step to step.
type scalars struct {
	Rate float32
	Step uint32
}

const width = 8 // of a sample, and of the weights

// samples are n of them, sample i of width values that tell i.
func samples(n int) loader.Dataset {
	fields := []loader.Field{
		{Name: "x", DType: dtype.Float32, Shape: []int{width}},
		{Name: "label", DType: dtype.Uint8},
	}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		for j, x := 0, loader.Column[float32](row, "x"); j < len(x); j++ {
			x[j] = value(i, j)
		}
		return loader.Write(row, "label", byte(i))
	})
}

func value(i, j int) float32 { return float32((i*31+j*7)%17) - 8 }

// update is a step's work: its result depends on all steps before, in their order, and on
// what the scalars are.
var update = &device.Kernel{Name: "update", Go: func(a *device.Args) {
	w, x, p := device.Elements[float32](a, 0), device.Elements[float32](a, 1), device.Elements[scalars](a, 2)[0]
	advance(w, x, p)
}}

// updateBytes is update with bytes.
var updateBytes = &device.Kernel{Name: "update bytes", Go: func(a *device.Args) {
	w, p := device.Elements[float32](a, 0), device.Elements[scalars](a, 2)[0]
	x := make([]float32, len(a.Bytes(1)))
	for i, v := range a.Bytes(1) {
		x[i] = float32(v)
	}
	advance(w, x, p)
}}

func advance(w, x []float32, p scalars) {
	for j := range w {
		var sum float32
		for i := j; i < len(x); i += width {
			sum += x[i]
		}
		w[j] = float32(w[j]*0.75) + float32(p.Rate*sum) + float32(p.Step%13)
	}
}

// note writes what the weights are after a step to its place in a log.
var note = &device.Kernel{Name: "note", Go: func(a *device.Args) {
	log, w, p := device.Elements[uint64](a, 0), device.Elements[float32](a, 1), device.Elements[scalars](a, 2)[0]
	log[p.Step] = digest(w)
}}

func digest(w []float32) (d uint64) {
	for _, v := range w {
		d = d*1_000_003 + uint64(math.Float32bits(v))
	}
	return d
}

// scale is a kernel with a scalar: out = in * factor.
var scale = &device.Kernel{Name: "scale", Go: func(a *device.Args) {
	out, in, factor := device.Elements[float32](a, 0), device.Elements[float32](a, 1), a.Float32(2)
	for i := range out {
		out[i] = in[i] * factor
	}
}}

func launch(s *device.Stream, k *device.Kernel, args func(*device.Args)) error {
	l := device.Launch{Kernel: k, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	args(&l.Args)
	return s.Launch(&l)
}

// A rig is a pipeline on a device of its own, and a model.
type rig struct {
	t       *testing.T
	dev     *device.Device
	tap     *devicetest.Tap
	compute *device.Stream
	ld      *loader.Loader
	pf      *prefetch.Prefetcher
	w       *device.Buffer // the weights
	log     *device.Buffer // a digest of them after every step
	before  device.Usage
	checker *order.Checker // nil if nothing is checked

	bodies  int // how often the step's code has run
	submits func(s *device.Stream, b capture.Batch, params device.View) error
}

// logged is how many steps the log has room for.
const logged = 4096

type setting struct {
	n, batch int
	lo       loader.Options
	po       prefetch.Options
	co       cpu.Options
	checked  bool // by package order
	driver   driver.Device
	data     loader.Dataset // samples(n) if nil
}

func newRig(t *testing.T, c setting) *rig {
	t.Helper()
	r := &rig{t: t}
	drv := c.driver
	var err error
	if drv == nil {
		drv, err = cpu.New(c.co)
		require.NoError(t, err)
	}
	if c.checked {
		r.checker = order.New(order.Options{ListOnly: true})
		drv = r.checker.Wrap(drv)
	}
	r.tap = devicetest.NewTap(drv)
	r.dev = device.New(r.tap)
	r.compute, err = r.dev.NewStream(device.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	if c.data == nil {
		c.data = samples(c.n)
	}
	r.ld, err = loader.New(c.data, c.batch, c.lo)
	require.NoError(t, err)
	r.before = r.dev.Usage()
	r.w, err = r.dev.Alloc(width * 4)
	require.NoError(t, err)
	r.log, err = r.dev.Alloc(logged * 8)
	require.NoError(t, err)
	require.NoError(t, r.compute.Memset(r.w.View(), 0))
	require.NoError(t, r.compute.Memset(r.log.View(), 0))
	require.NoError(t, r.compute.Synchronize(t.Context()))
	r.pf, err = prefetch.New(r.compute, r.ld, c.po)
	require.NoError(t, err)
	r.submits = r.good
	return r
}

// good is a step with all that changes in its parameters.
func (r *rig) good(s *device.Stream, b capture.Batch, params device.View) error {
	err := launch(s, update, func(a *device.Args) {
		r.w.View().InOut(a)
		b.Field("x").View.In(a)
		params.In(a)
	})
	return errors.Join(err, launch(s, note, func(a *device.Args) {
		r.log.View().InOut(a)
		r.w.View().In(a)
		params.In(a)
	}))
}

func (r *rig) body(s *device.Stream, b capture.Batch, params device.View) error {
	r.bodies++
	return r.submits(s, b, params)
}

func (r *rig) step(o capture.Options) *capture.Step[scalars] {
	r.t.Helper()
	s, err := capture.New[scalars](r.pf, r.body, o)
	require.NoError(r.t, err)
	return s
}

// at is what the scalars are at a step.
func at(step int) scalars { return scalars{Rate: 1 / float32(1+step/10), Step: uint32(step)} }

// train runs the step on all that is left, for most batches at most, and returns how
// many it was.
func (r *rig) train(step *capture.Step[scalars], from, most int) (n int, err error) {
	for b, err := range r.pf.All(r.t.Context()) {
		if err != nil {
			return n, err
		}
		if err := step.Run(b, at(from+n)); err != nil {
			return n, err
		}
		if n++; n == most {
			break
		}
	}
	return n, nil
}

// digests is the log of so many steps.
func (r *rig) digests(steps int) []uint64 {
	r.t.Helper()
	require.NoError(r.t, r.dev.Synchronize(context.Background()))
	host, err := r.dev.AllocHost(logged*8, device.HostOptions{})
	require.NoError(r.t, err)
	require.NoError(r.t, r.compute.CopyD2H(host.Bytes(), r.log.View()))
	require.NoError(r.t, r.compute.Synchronize(context.Background()))
	log := make([]uint64, steps)
	for i := range log {
		log[i] = binary.LittleEndian.Uint64(host.Bytes()[8*i:])
	}
	require.NoError(r.t, host.Close())
	return log
}

// expected is what the log must be if the loader's batches are trained on in order, from
// the beginning: computed by plain loops.
func (r *rig) expected(n, batch, steps int) []uint64 {
	w := make([]float32, width)
	log := make([]uint64, 0, steps)
	per := (n + batch - 1) / batch
	for step := range steps {
		epoch, k := step/per, step%per
		order := r.ld.Order(epoch)
		var x []float32
		for i := k * batch; i < min((k+1)*batch, n); i++ {
			for j := range width {
				x = append(x, value(int(order.At(int64(i))), j))
			}
		}
		advance(w, x, at(step))
		log = append(log, digest(w))
	}
	return log
}

// close frees everything and requires that nothing is left.
func (r *rig) close(steps ...*capture.Step[scalars]) {
	r.t.Helper()
	for _, s := range steps {
		require.NoError(r.t, s.Close())
	}
	require.NoError(r.t, r.dev.Synchronize(context.Background()))
	require.NoError(r.t, r.pf.Close())
	require.NoError(r.t, errors.Join(r.w.Close(), r.log.Close()))
	after := r.dev.Usage()
	after.Allocations = r.before.Allocations
	require.Equal(r.t, r.before, after)
	require.NoError(r.t, errors.Join(r.compute.Close(), r.dev.Close()))
	if r.checker != nil {
		require.NoError(r.t, r.checker.Err())
	}
}

func unkind() *cpu.Adversary {
	return &cpu.Adversary{Poison: true, LateRead: true, CheckInputs: true, Reorder: true, Seed: 1}
}

// baked is the argument of a kernel that a difference is in.
func baked(t *testing.T, err error, kernel string, argument int) *device.Difference {
	t.Helper()
	var d *device.Difference
	require.ErrorAs(t, err, &d)
	require.Equal(t, kernel, d.Kernel)
	require.Equal(t, argument, d.Argument)
	return d
}
