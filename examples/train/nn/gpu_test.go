package nn

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
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

// TestGPUSumsAreNearTheCPUs needs a GPU. A sum of k products of values up to 1 may be off by
// k roundings of it.
func TestGPUSumsAreNearTheCPUs(t *testing.T) {
	gpu, cpu := kerneltest.CUDA(t), kerneltest.CPU(t)
	values := func(r *kerneltest.Rig, seed uint64, n int) device.View {
		random := rand.New(rand.NewPCG(seed, 3))
		x := make([]float32, n)
		for i := range x {
			x[i] = 2*random.Float32() - 1
		}
		return r.Upload(dtype.Bytes(x))
	}
	for _, sh := range []shape{{1, 1, 1}, {128, 10, 128}, {33, 17, 300}, {5, 129, 10}, {16, 16, 128}} {
		product := func(r *kerneltest.Rig, tr transpose) []float32 {
			out := r.Alloc(sh.m * sh.n * 4)
			require.NoError(t, matMul(r.Stream, out, values(r, 1, sh.m*sh.k), values(r, 2, sh.k*sh.n), sh, tr))
			return dtype.As[float32](r.Download(out))
		}
		for _, tr := range []transpose{plain, transposeA, transposeB} {
			require.InDeltaSlice(t, product(cpu, tr), product(gpu, tr), float64(sh.k)*1e-6, "%v, transposed %v", sh, tr)
		}
	}
	for _, classes := range []int{1, 10, 32, 100} {
		const n = 37
		type losses struct {
			loss    float64
			correct uint32
			grad    []float32
		}
		lose := func(r *kerneltest.Rig) losses {
			loss, correct, grad, targets := r.Alloc(4), r.Alloc(4), r.Alloc(n*classes*4), r.Alloc(n*classes*4)
			_, numbers := samples(1, n, 2*classes, classes)
			numbers[5] = 255 // no label
			require.NoError(t, kernels.OneHot(r.Stream, targets, r.Upload(numbers), kernels.OneHotParams{Labels: dtype.Uint8, Classes: classes}))
			require.NoError(t, crossEntropy(r.Stream, loss, correct, grad, values(r, 3, n*classes), targets, n, classes, changing{}))
			return losses{float64(dtype.As[float32](r.Download(loss))[0]), dtype.As[uint32](r.Download(correct))[0], dtype.As[float32](r.Download(grad))}
		}
		want, got := lose(cpu), lose(gpu)
		require.InDelta(t, want.loss, got.loss, 1e-5, "%d classes", classes)
		require.Equal(t, want.correct, got.correct, "%d classes", classes)
		require.InDeltaSlice(t, want.grad, got.grad, 1e-6, "%d classes", classes)
	}
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
