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

// adam submits one update of params (Kingma and Ba, 2015). step counts from 1.
// The corrections for the moments' start at zero depend on nothing but step, so
// the host folds them into the rate and into epsilon.
func adam(s *device.Stream, params, grads, moment1, moment2 device.View, rate float64, step int) error {
	c1 := 1 - math.Pow(beta1, float64(step))
	c2 := math.Sqrt(1 - math.Pow(beta2, float64(step)))
	l := device.Launch{Kernel: adamKernel}
	count := int(params.Size() / 4)
	grid(&l, count)
	params.InOut(&l.Args)
	moment1.InOut(&l.Args)
	moment2.InOut(&l.Args)
	grads.In(&l.Args)
	l.Args.Int32(int32(count))
	l.Args.Float32(float32(rate * c2 / c1))
	l.Args.Float32(float32(epsilon * c2))
	return s.Launch(&l)
}

var adamKernel = &device.Kernel{Name: "adam", Module: module, Go: func(a *device.Args) {
	params, moment1 := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	moment2, grads := device.Elements[float32](a, 2), device.Elements[float32](a, 3)
	rate, eps := a.F32(5), a.F32(6)
	moment1, moment2, grads = moment1[:len(params)], moment2[:len(params)], grads[:len(params)]
	for i, g := range grads {
		m := moment1[i] + float32((1-beta1)*(g-moment1[i]))
		v := moment2[i] + float32((1-beta2)*(float32(g*g)-moment2[i]))
		moment1[i], moment2[i] = m, v
		params[i] -= float32(rate*m) / (float32(math.Sqrt(float64(v))) + eps)
	}
}}
