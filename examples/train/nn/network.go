package nn

import (
	"errors"
	"math"
	"math/rand/v2"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
)

// A Network owns its device memory until Close. It is used by one goroutine and
// with one stream at a time.
type Network struct {
	opts   Options
	layers []layer

	// Of each, one block for all layers, so that Adam is a single launch.
	params, grads, moment1, moment2 device.View

	inputs  device.View // float32 [MaxBatch, Inputs], normalised; empty if images are float32
	targets device.View // float32 [MaxBatch, Classes], one-hot
	losses  device.View // float32 [ReportSteps], mean loss of each step
	correct device.View // uint32 [ReportSteps], samples of each step classified well
	samples []int       // [ReportSteps], size of each step's batch
	steps   int         // training steps submitted so far
	used    int         // entries of losses, correct and samples in use

	initial *device.HostBuffer // the parameters' start, lent to the stream by New
	report  *device.HostBuffer // losses and counts on their way to Report
	owned   []interface{ Close() error }
}

// layer computes out = in·weight + bias, followed by ReLU unless it is the last.
type layer struct {
	in, out                int         // widths
	weight, bias           device.View // float32 [in, out] and [out]
	gradWeight, gradBias   device.View
	activation, activeGrad device.View // float32 [MaxBatch, out]
}

// New makes a network on s's device and submits its first contents to s.
func New(s *device.Stream, o Options) (*Network, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := s.Device().CheckKernels(launched...); err != nil {
		return nil, err
	}
	n := &Network{opts: o, samples: make([]int, o.ReportSteps)}
	if err := errors.Join(n.allocate(s.Device()), n.initialise(s)); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close frees the network's memory. Its work must be done: synchronise the stream
// before.
func (n *Network) Close() error {
	var errs []error
	for _, m := range n.owned {
		errs = append(errs, m.Close())
	}
	n.owned = nil
	return errors.Join(errs...)
}

// Parameters is the number of trained values.
func (n *Network) Parameters() int { return int(n.params.Size() / 4) }

// Steps is the number of training steps submitted so far.
func (n *Network) Steps() int { return n.steps }

func (n *Network) allocate(d *device.Device) error {
	o := n.opts
	widths := append(append([]int{o.Inputs}, o.Hidden...), o.Classes)
	parameters, activations := 0, 0
	for i, out := range widths[1:] {
		parameters += aligned(widths[i]*out) + aligned(out)
		activations += aligned(o.MaxBatch * out)
	}
	a := allocator{n: n, d: d}
	n.params, n.grads = a.floats(parameters), a.floats(parameters)
	n.moment1, n.moment2 = a.floats(parameters), a.floats(parameters)
	active, activeGrads := a.floats(activations), a.floats(activations)
	if o.Images == dtype.Uint8 {
		n.inputs = a.floats(o.MaxBatch * o.Inputs)
	}
	n.targets = a.floats(o.MaxBatch * o.Classes)
	n.losses, n.correct = a.floats(o.ReportSteps), a.floats(o.ReportSteps)
	n.initial, n.report = a.host(parameters*4), a.host(o.ReportSteps*8)
	if a.err != nil {
		return a.err
	}

	p, g, act, actGrad := cursor{v: n.params}, cursor{v: n.grads}, cursor{v: active}, cursor{v: activeGrads}
	for i, out := range widths[1:] {
		in := widths[i]
		n.layers = append(n.layers, layer{
			in: in, out: out,
			weight: p.take(in * out), bias: p.take(out),
			gradWeight: g.take(in * out), gradBias: g.take(out),
			activation: act.take(o.MaxBatch * out), activeGrad: actGrad.take(o.MaxBatch * out),
		})
	}
	return nil
}

// initialise submits weights drawn uniformly with He's deviation, √(2/in), which
// keeps a ReLU layer's outputs as large as its inputs. All else starts at zero:
// the padding between parameters too, so that it stays zero.
func (n *Network) initialise(s *device.Stream) error {
	if n.initial == nil {
		return nil // allocate has failed and says so
	}
	random := rand.New(rand.NewPCG(n.opts.Seed, 0))
	values := dtype.As[float32](n.initial.Bytes())
	clear(values)
	for _, l := range n.layers {
		start := int(l.weight.Address()-n.params.Address()) / 4
		bound := math.Sqrt(6 / float64(l.in))
		for i := range l.in * l.out {
			values[start+i] = float32(bound * (2*random.Float64() - 1))
		}
	}
	err := s.CopyH2D(n.params, n.initial.Bytes())
	for _, v := range []device.View{n.grads, n.moment1, n.moment2} {
		err = errors.Join(err, s.Memset(v, 0))
	}
	return err
}

// allocator gathers allocations and keeps the first error.
type allocator struct {
	n   *Network
	d   *device.Device
	err error
}

func (a *allocator) floats(count int) device.View {
	if a.err != nil {
		return device.View{}
	}
	b, err := a.d.Alloc(int64(count) * 4)
	if err != nil {
		a.err = err
		return device.View{}
	}
	a.n.owned = append(a.n.owned, b)
	return b.View()
}

func (a *allocator) host(bytes int) *device.HostBuffer {
	if a.err != nil {
		return nil
	}
	h, err := a.d.AllocHost(int64(bytes), device.HostOptions{Pageable: true})
	if err != nil {
		a.err = err
		return nil
	}
	a.n.owned = append(a.n.owned, h)
	return h
}

// cursor cuts a block into aligned pieces.
type cursor struct {
	v  device.View
	at int64
}

func (c *cursor) take(floats int) device.View {
	v := c.v.Slice(c.at, int64(floats)*4)
	c.at += int64(aligned(floats)) * 4
	return v
}

// aligned rounds a count of float32 up to 64, which are 256 bytes.
func aligned(floats int) int { return (floats + 63) &^ 63 }
