package nn

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// BenchmarkKernels tells how long a GPU needs for each kernel of a step on 128 samples of
// MNIST, and for the whole step: they are replayed one behind the other, so that the host is
// no part of it. A whole step is "all".
func BenchmarkKernels(b *testing.B) {
	const n, inputs, hidden, classes = 128, 784, 128, 10
	r := kerneltest.CUDA(b)
	net := newNetwork(b, r, Options{Inputs: inputs, Classes: classes, MaxBatch: n, Images: dtype.Float32})
	pixels, numbers := samples(1, n, inputs, classes)
	values := make([]float32, len(pixels))
	for i, v := range pixels {
		values[i] = float32(v) / 255
	}
	images, labels := r.Upload(dtype.Bytes(values)), r.Upload(numbers)
	scalars := r.Upload(dtype.Bytes([]float32{0, epsilon, 0})) // no rate: the parameters stay
	first, last := &net.layers[0], &net.layers[1]
	grad, gradLast := batch(first.activeGrad, n, hidden), batch(last.activeGrad, n, classes)
	active, scores := batch(first.activation, n, hidden), batch(last.activation, n, classes)
	s, c := r.Stream, changing{memory: scalars}
	for _, k := range []struct {
		name   string
		submit func() error
	}{
		{"matmul/784x128", func() error {
			return matMul(s, active, images, first.weight, shape{m: n, n: hidden, k: inputs}, plain)
		}},
		{"bias_relu/128", func() error { return addBias(s, active, first.bias, n, hidden, true) }},
		{"matmul/128x10", func() error {
			return matMul(s, scores, active, last.weight, shape{m: n, n: classes, k: hidden}, plain)
		}},
		{"bias/10", func() error { return addBias(s, scores, last.bias, n, classes, false) }},
		{"one_hot", func() error {
			return kernels.OneHot(s, batch(net.targets, n, classes), labels, kernels.OneHotParams{Labels: dtype.Uint8, Classes: classes})
		}},
		{"cross_entropy", func() error {
			return crossEntropy(s, net.losses, net.correct, gradLast, scores, batch(net.targets, n, classes), n, classes, c)
		}},
		{"matmul_ta/128x10", func() error {
			return matMul(s, last.gradWeight, active, gradLast, shape{m: hidden, n: classes, k: n}, transposeA)
		}},
		{"column_sum/10", func() error { return columnSum(s, last.gradBias, gradLast, n, classes) }},
		{"matmul_tb/10x128", func() error {
			return matMul(s, grad, gradLast, last.weight, shape{m: n, n: hidden, k: classes}, transposeB)
		}},
		{"relu_backward/128", func() error { return reluBackward(s, grad, active) }},
		{"matmul_ta/784x128", func() error {
			return matMul(s, first.gradWeight, images, grad, shape{m: inputs, n: hidden, k: n}, transposeA)
		}},
		{"column_sum/128", func() error { return columnSum(s, first.gradBias, grad, n, hidden) }},
		{"adam", func() error { return adam(s, net.params, net.grads, net.moment1, net.moment2, c) }},
		{"all", func() error { return net.Submit(s, images, labels, n, scalars) }},
	} {
		b.Run(k.name, func(b *testing.B) { replay(b, s, k.submit) })
	}
}

// replay measures one submit of many that follow each other in a graph.
func replay(b *testing.B, s *device.Stream, submit func() error) {
	const many = 64
	g, err := s.Capture(func() error {
		for range many {
			if err := submit(); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, g.Close()) }()
	x, err := g.Instantiate()
	require.NoError(b, err)
	defer func() { require.NoError(b, x.Close()) }()
	for b.Loop() {
		require.NoError(b, x.Launch(s))
		require.NoError(b, x.Launch(s)) // the host's way there and back counts once
		require.NoError(b, s.Synchronize(b.Context()))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(2*many*b.N), "µs/kernel")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStep trains the network for MNIST on one batch over and over.
func BenchmarkStep(b *testing.B) {
	for _, on := range []struct {
		name string
		open func(testing.TB) *kerneltest.Rig
	}{{"cpu", kerneltest.Plain}, {"cuda", kerneltest.CUDA}} {
		for _, n := range []int{64, 256, 1024} {
			b.Run(fmt.Sprintf("device=%s/batch=%d", on.name, n), func(b *testing.B) {
				r := on.open(b)
				net := newNetwork(b, r, Options{Inputs: 784, Classes: 10, MaxBatch: n})
				pixels, labels := samples(1, n, 784, 10)
				images, labelView := r.Upload(pixels), r.Upload(labels)
				b.ReportAllocs()
				for b.Loop() {
					if err := net.Step(r.Stream, images, labelView, n); err != nil {
						b.Fatal(err)
					}
					// The loop must not run ahead of the device without end.
					if net.used == 256 {
						if _, err := net.Report(b.Context(), r.Stream); err != nil {
							b.Fatal(err)
						}
					}
				}
				if _, err := net.Report(b.Context(), r.Stream); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
