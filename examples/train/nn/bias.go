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
	l.Args.Int32(int32(n))
	l.Args.Int32(int32(width))
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
	l.Args.Int32(int32(count))
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

// columnSum submits out[j] = sum of x[i][j] over n rows, in order of i.
func columnSum(s *device.Stream, out, x device.View, n, width int) error {
	l := device.Launch{Kernel: columnSumKernel}
	grid(&l, width)
	out.Out(&l.Args)
	x.In(&l.Args)
	l.Args.Int32(int32(n))
	l.Args.Int32(int32(width))
	return s.Launch(&l)
}

var columnSumKernel = &device.Kernel{Name: "column_sum", Module: module, Go: func(a *device.Args) {
	out, x := device.Elements[float32](a, 0), device.Elements[float32](a, 1)
	clear(out)
	for ; len(x) > 0; x = x[len(out):] {
		for i, v := range x[:len(out)] {
			out[i] += v
		}
	}
}}
