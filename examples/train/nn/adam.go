package nn

import (
	"math"

	"github.com/leat-go/leat/device"
)

// Adam's constants, as its authors recommend them.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// adamScalars are the rate and epsilon of a step, counted from 1. The corrections for the
// moments' start at zero depend on nothing but the step, so the host folds them in.
func adamScalars(rate float64, step int) Scalars {
	c1 := 1 - math.Pow(beta1, float64(step))
	c2 := math.Sqrt(1 - math.Pow(beta2, float64(step)))
	return Scalars{Rate: float32(rate * c2 / c1), Epsilon: float32(epsilon * c2)}
}

// adam submits one update of params (Kingma and Ba, 2015).
func adam(s *device.Stream, params, grads, moment1, moment2 device.View, c changing) error {
	l := device.Launch{Kernel: adamKernel}
	count := int(params.Size() / 4)
	grid(&l, count)
	params.InOut(&l.Args)
	moment1.InOut(&l.Args)
	moment2.InOut(&l.Args)
	grads.In(&l.Args)
	l.Args.AddInt32(int32(count))
	if c.memory.Size() > 0 {
		l.Kernel = adamAtKernel
		c.memory.In(&l.Args)
	} else {
		l.Args.AddFloat32(c.values.Rate)
		l.Args.AddFloat32(c.values.Epsilon)
	}
	return s.Launch(&l)
}

var adamKernel = &device.Kernel{Name: "adam", Module: module, Go: func(a *device.Args) {
	adamAll(a, a.Float32(5), a.Float32(6))
}}

var adamAtKernel = &device.Kernel{Name: "adam_at", Module: module, Go: func(a *device.Args) {
	c := device.Elements[Scalars](a, 5)[0]
	adamAll(a, c.Rate, c.Epsilon)
}}

func adamAll(a *device.Args, rate, eps float32) {
	params, moment1 := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	moment2, grads := device.Elements[float32](a, 2), device.Elements[float32](a, 3)
	moment1, moment2, grads = moment1[:len(params)], moment2[:len(params)], grads[:len(params)]
	for i, g := range grads {
		m := moment1[i] + float32((1-beta1)*(g-moment1[i]))
		v := moment2[i] + float32((1-beta2)*(float32(g*g)-moment2[i]))
		moment1[i], moment2[i] = m, v
		params[i] -= float32(rate*m) / (float32(math.Sqrt(float64(v))) + eps)
	}
}
