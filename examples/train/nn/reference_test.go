package nn

import "math"

// reference is the network in float64, by its definition.
type reference struct {
	widths []int
	params []float64 // of each layer the weight [in, out], then the bias [out]
}

// loss is the mean cross-entropy of the samples, each an input and a label.
func (r reference) loss(inputs [][]float64, labels []int) float64 {
	sum := 0.0
	for i, x := range inputs {
		logits := r.logits(x)
		top, total := math.Inf(-1), 0.0
		for _, v := range logits {
			top = max(top, v)
		}
		for _, v := range logits {
			total += math.Exp(v - top)
		}
		sum += math.Log(total) + top - logits[labels[i]]
	}
	return sum / float64(len(inputs))
}

func (r reference) logits(x []float64) []float64 {
	params := r.params
	for l, out := range r.widths[1:] {
		in := r.widths[l]
		weight, bias := params[:in*out], params[in*out:][:out]
		params = params[in*out+out:]
		y := append([]float64{}, bias...)
		for j := range y {
			for i, v := range x {
				y[j] += v * weight[i*out+j]
			}
			if l < len(r.widths)-2 {
				y[j] = max(y[j], 0)
			}
		}
		x = y
	}
	return x
}

// gradient is the derivative with respect to parameter i, by central differences.
func (r reference) gradient(i int, inputs [][]float64, labels []int) float64 {
	const h = 1e-6
	value := r.params[i]
	defer func() { r.params[i] = value }()
	r.params[i] = value + h
	above := r.loss(inputs, labels)
	r.params[i] = value - h
	return (above - r.loss(inputs, labels)) / (2 * h)
}

// adamReference is Adam as its paper writes it.
type adamReference struct{ m, v []float64 }

func (a *adamReference) step(params, grads []float64, rate float64, t int) {
	if a.m == nil {
		a.m, a.v = make([]float64, len(params)), make([]float64, len(params))
	}
	for i, g := range grads {
		a.m[i] = 0.9*a.m[i] + 0.1*g
		a.v[i] = 0.999*a.v[i] + 0.001*g*g
		m, v := a.m[i]/(1-math.Pow(0.9, float64(t))), a.v[i]/(1-math.Pow(0.999, float64(t)))
		params[i] -= rate * m / (math.Sqrt(v) + 1e-8)
	}
}
