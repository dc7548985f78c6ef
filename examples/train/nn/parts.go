package nn

import (
	"fmt"

	"github.com/leat-go/leat/device"
)

// Gradient submits the first half of a step, on a part of its batch: the gradient of the
// mean loss over the part's n samples goes to out, which has GradientBytes. Arguments are
// Step's. Nothing is learnt before Update.
func (net *Network) Gradient(s *device.Stream, out, images, labels device.View, n int) error {
	if out.Size() != net.GradientBytes() {
		return fmt.Errorf("nn: a gradient has %d bytes, not %d", net.GradientBytes(), out.Size())
	}
	in, err := net.evaluate(s, images, labels, n)
	if err != nil {
		return err
	}
	if err := net.backward(s, in, n); err != nil {
		return err
	}
	return s.CopyD2D(out, net.grads)
}

// GradientBytes is the size of a gradient: float32, all parameters and what aligns them.
func (net *Network) GradientBytes() int64 { return net.grads.Size() }

// Update submits the second half of a step: it learns from the mean of the gradients of
// parts equally large parts, which lie one behind the other. They are added in that order,
// whichever devices they come from, so that the result does not depend on the devices.
func (net *Network) Update(s *device.Stream, gradients device.View, parts int) error {
	if want := int64(parts) * net.GradientBytes(); parts < 1 || gradients.Size() != want {
		return fmt.Errorf("nn: %d gradients have %d bytes, not %d", parts, want, gradients.Size())
	}
	if err := mean(s, net.grads, gradients, parts); err != nil {
		return err
	}
	net.steps++
	return adam(s, net.params, net.grads, net.moment1, net.moment2, changing{values: adamScalars(net.rate(), net.steps)})
}

// mean submits out = the mean of parts that lie one behind the other.
func mean(s *device.Stream, out, parts device.View, n int) error {
	l := device.Launch{Kernel: meanKernel}
	count := int(out.Size() / 4)
	grid(&l, count)
	out.Out(&l.Args)
	parts.In(&l.Args)
	l.Args.AddInt32(int32(n))
	l.Args.AddInt32(int32(count))
	return s.Launch(&l)
}

var meanKernel = &device.Kernel{Name: "mean", Module: module, Go: func(a *device.Args) {
	out, parts := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	n := a.Int32(2)
	copy(out, parts)
	for range n - 1 {
		parts = parts[len(out):]
		for i, v := range parts[:len(out)] {
			out[i] += v
		}
	}
	for i := range out {
		out[i] /= float32(n)
	}
}}
