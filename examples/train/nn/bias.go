package nn

import "github.com/leat-go/leat/device"

// addBias submits x += bias on each of n rows, and then, if relu, x = max(x, 0).
func addBias(s *device.Stream, x, bias device.View, n, width int, relu bool) error {
	l := device.Launch{Kernel: biasKernel}
	if relu {
		l.Kernel = biasReLUKernel
	}
	grid(&l, n*width)
	x.InOut(&l.Args)
	bias.In(&l.Args)
	l.Args.AddInt32(int32(n))
	l.Args.AddInt32(int32(width))
	return s.Launch(&l)
}

var biasKernel = &device.Kernel{Name: "bias", Module: module, Go: func(a *device.Args) {
	x, bias := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	for ; len(x) > 0; x = x[len(bias):] {
		row := x[:len(bias)]
		for i, b := range bias {
			row[i] += b
		}
	}
}}

var biasReLUKernel = &device.Kernel{Name: "bias_relu", Module: module, Go: func(a *device.Args) {
	x, bias := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	for ; len(x) > 0; x = x[len(bias):] {
		row := x[:len(bias)]
		for i, b := range bias {
			row[i] = max(row[i]+b, 0)
		}
	}
}}

// reluBackward submits grad = 0 wherever the activation that ReLU gave is 0.
func reluBackward(s *device.Stream, grad, activation device.View) error {
	l := device.Launch{Kernel: reluBackwardKernel}
	count := int(grad.Size() / 4)
	grid(&l, count)
	grad.InOut(&l.Args)
	activation.In(&l.Args)
	l.Args.AddInt32(int32(count))
	return s.Launch(&l)
}

var reluBackwardKernel = &device.Kernel{Name: "relu_backward", Module: module, Go: func(a *device.Args) {
	grad, activation := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	for i, x := range activation[:len(grad)] {
		if x == 0 {
			grad[i] = 0
		}
	}
}}

// sumParts is how many sums columnSum makes of each column, and then adds: part p is of the
// rows p, p+sumParts and so on. A thread for each column would be too few.
const sumParts = 32

// columnSum submits out[j] = sum of x[i][j] over n rows.
func columnSum(s *device.Stream, out, x device.View, n, width int) error {
	l := device.Launch{Kernel: columnSumKernel}
	const columns = 32 // of a block
	l.Grid, l.Block = [3]uint32{blocks(width, columns), 1, 1}, [3]uint32{columns * sumParts, 1, 1}
	out.Out(&l.Args)
	x.In(&l.Args)
	l.Args.AddInt32(int32(n))
	l.Args.AddInt32(int32(width))
	return s.Launch(&l)
}

var columnSumKernel = &device.Kernel{Name: "column_sum", Module: module, Go: func(a *device.Args) {
	out, x := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	n, width := int(a.Int32(2)), int(a.Int32(3))
	for j := range out {
		var parts [sumParts]float32
		for i := range n {
			parts[i%sumParts] += x[i*width+j]
		}
		out[j] = parts[0]
		for _, p := range parts[1:] {
			out[j] += p
		}
	}
}}
