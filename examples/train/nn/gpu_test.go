package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// TestGPULossesStayNearTheCPUs needs a GPU. Sums are taken in another order there,
// and exp and log are approximations: after a few epochs losses of about 1 differ
// by less than a thousandth.
func TestGPULossesStayNearTheCPUs(t *testing.T) {
	gpu := kerneltest.CUDA(t)
	o := Options{Inputs: 100, Classes: 10, MaxBatch: 64, Hidden: []int{129, 33}, Seed: 1}
	firstWant, lastWant := train(t, kerneltest.CPU(t), o, 5)
	first, last := train(t, gpu, o, 5)
	require.InDelta(t, firstWant.Loss, first.Loss, 1e-4)
	require.InDelta(t, lastWant.Loss, last.Loss, 1e-3)
	require.InDeltaSlice(t, lastWant.Losses, last.Losses, 1e-3)

	firstAgain, lastAgain := train(t, gpu, o, 5)
	require.Equal(t, first.Loss, firstAgain.Loss, "the same device gives the same losses")
	require.Equal(t, last.Losses, lastAgain.Losses)

	r := kerneltest.CUDA(t)
	_, inParts := trainBy(t, r, o, 5, inTwo(r))
	require.Equal(t, last.Losses, inParts.Losses, "and so does a step in two parts")
}

// TestGPUScoresAreNearTheCPUs needs a GPU.
func TestGPUScoresAreNearTheCPUs(t *testing.T) {
	o := Options{Inputs: 100, Classes: 10, MaxBatch: 64, Hidden: []int{129, 33}, Seed: 1}
	pixels, _ := samples(1, 64, o.Inputs, o.Classes)
	scores := func(r *kerneltest.Rig, n int) []float32 {
		net, out := newNetwork(t, r, o), r.Alloc(n*o.Classes*4)
		require.NoError(t, net.Predict(r.Stream, out, r.Upload(pixels[:n*o.Inputs]), n))
		return dtype.As[float32](r.Download(out))
	}
	gpu, cpu := kerneltest.CUDA(t), kerneltest.CPU(t)
	for _, n := range []int{1, 2, 31, 64} {
		require.InDeltaSlice(t, scores(cpu, n), scores(gpu, n), 1e-3, "%d samples", n)
	}
}

// TestElementwiseKernelsAgree needs a GPU: what has no reduction is equal to the
// last bit.
func TestElementwiseKernelsAgree(t *testing.T) {
	const rows, width = 37, 100
	random := func(r *kerneltest.Rig, seed uint64) device.View {
		pixels, _ := samples(seed, rows, width, 2)
		values := make([]float32, len(pixels))
		for i, v := range pixels {
			values[i] = (float32(v) - 128) / 77
		}
		return r.Upload(dtype.Bytes(values))
	}
	kerneltest.Agree(t, []kerneltest.Case{
		{Name: "bias", Run: func(r *kerneltest.Rig) []device.View {
			x, bias := random(r, 1), random(r, 2).Slice(0, width*4)
			require.NoError(r.T, addBias(r.Stream, x, bias, rows, width, false))
			return []device.View{x}
		}},
		{Name: "bias and ReLU", Run: func(r *kerneltest.Rig) []device.View {
			x, bias := random(r, 1), random(r, 2).Slice(0, width*4)
			require.NoError(r.T, addBias(r.Stream, x, bias, rows, width, true))
			grad := random(r, 3)
			require.NoError(r.T, reluBackward(r.Stream, grad, x))
			return []device.View{x, grad}
		}},
		{Name: "column sum", Run: func(r *kerneltest.Rig) []device.View {
			out := r.Alloc(width * 4)
			require.NoError(r.T, columnSum(r.Stream, out, random(r, 1), rows, width))
			return []device.View{out}
		}},
		{Name: "mean", Run: func(r *kerneltest.Rig) []device.View {
			out := r.Alloc(rows * width / 5 * 4)
			require.NoError(r.T, mean(r.Stream, out, random(r, 1), 5))
			return []device.View{out}
		}},
		{Name: "Adam", Run: func(r *kerneltest.Rig) []device.View {
			params, moment1, moment2 := random(r, 1), random(r, 2), random(r, 3)
			require.NoError(r.T, r.Stream.Memset(moment2, 0))
			for step := 1; step <= 5; step++ {
				require.NoError(r.T, adam(r.Stream, params, random(r, 4), moment1, moment2, changing{values: adamScalars(0.01, step)}))
			}
			return []device.View{params, moment1, moment2}
		}},
	})
}
