package nn

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, hidden := range [][]int{{}, {7}, {70, 65}} { // the last needs more than one tile
		r := kerneltest.CPU(t)
		o := Options{Inputs: 6, Classes: 4, MaxBatch: 9, Hidden: hidden, Seed: 3, Mean: 0.4, Std: 0.5}
		net := newNetwork(t, r, o)
		const n = 5 // a short batch
		pixels, labels := samples(1, n, o.Inputs, o.Classes)
		in, err := net.evaluate(r.Stream, r.Upload(pixels), r.Upload(labels), n)
		require.NoError(t, err)
		require.NoError(t, net.backward(r.Stream, in, n))

		ref := reference{widths: append(append([]int{o.Inputs}, hidden...), o.Classes), params: net.download(r, func(l layer) []device.View { return []device.View{l.weight, l.bias} })}
		inputs, numbers := normalized(pixels, labels, o)
		grads := net.download(r, func(l layer) []device.View { return []device.View{l.gradWeight, l.gradBias} })
		for i, got := range grads {
			require.InDelta(t, ref.gradient(i, inputs, numbers), got, 2e-6, "hidden %v, parameter %d", hidden, i)
		}
		report, err := net.Report(t.Context(), r.Stream)
		require.NoError(t, err)
		require.InDelta(t, ref.loss(inputs, numbers), report.Loss, 1e-6)
		require.Equal(t, n, report.Samples)
	}
}

func TestAdamAgainstFloat64(t *testing.T) {
	const count, rate = 300, 0.01
	r := kerneltest.CPU(t)
	random := rand.New(rand.NewPCG(1, 1))
	params, m, v := r.Alloc(count*4), r.Alloc(count*4), r.Alloc(count*4)
	for _, view := range []device.View{params, m, v} {
		require.NoError(t, r.Stream.Memset(view, 0))
	}
	want, ref := make([]float64, count), adamReference{}
	for step := 1; step <= 20; step++ {
		grads, grads64 := make([]float32, count), make([]float64, count)
		for i := range grads {
			grads[i] = float32(random.NormFloat64())
			grads64[i] = float64(grads[i])
		}
		ref.step(want, grads64, rate, step)
		require.NoError(t, adam(r.Stream, params, r.Upload(dtype.Bytes(grads)), m, v, changing{values: adamScalars(rate, step)}))
	}
	for i, got := range dtype.As[float32](r.Download(params)) {
		require.InDelta(t, want[i], got, 1e-6)
	}
}

// Labels follow from the pixels, so there is something to learn.
func TestTrainingLearns(t *testing.T) {
	r := kerneltest.CPU(t)
	o := Options{Inputs: 16, Classes: 4, MaxBatch: 32, Hidden: []int{24}, Seed: 1, DecaySteps: 400, LearningRate: 0.01}
	first, last := train(t, r, o, 40)
	require.Greater(t, first.Loss, 2*last.Loss)
	require.Greater(t, last.Accuracy, 0.95)
	require.Equal(t, 310, last.Samples)
	require.Equal(t, 10, last.Steps)
}

func TestSameSeedSameLosses(t *testing.T) {
	o := Options{Inputs: 16, Classes: 4, MaxBatch: 32, Hidden: []int{80}, Seed: 1}
	losses := func() []float32 {
		_, last := train(t, kerneltest.CPU(t), o, 3)
		return append([]float32{}, last.Losses...)
	}
	want := losses()
	require.Equal(t, want, losses())
	o.Seed++
	require.NotEqual(t, want, losses())
}

// Float32 images need no normalising.
func TestFloat32Images(t *testing.T) {
	o := Options{Inputs: 6, Classes: 4, MaxBatch: 8, Seed: 3, Mean: 0.4, Std: 0.5}
	pixels, labels := samples(1, 8, o.Inputs, o.Classes)
	inputs, _ := normalized(pixels, labels, o)
	var flat []float32
	for _, row := range inputs {
		for _, v := range row {
			flat = append(flat, float32(v))
		}
	}
	loss := func(o Options, images []byte) float64 {
		r := kerneltest.CPU(t)
		net := newNetwork(t, r, o)
		require.NoError(t, net.Step(r.Stream, r.Upload(images), r.Upload(labels), 8))
		report, err := net.Report(t.Context(), r.Stream)
		require.NoError(t, err)
		return report.Loss
	}
	want := loss(o, pixels)
	o.Images = dtype.Float32
	require.InDelta(t, want, loss(o, dtype.Bytes(flat)), 1e-6)
}

func TestScoresAgainstFloat64(t *testing.T) {
	r := kerneltest.CPU(t)
	o := Options{Inputs: 16, Classes: 4, MaxBatch: 8, Hidden: []int{8}, Seed: 5, Std: 0.3}
	net := newNetwork(t, r, o)
	pixels, labels := samples(1, 5, o.Inputs, o.Classes)
	inputs, _ := normalized(pixels, labels, o)
	scores := r.Alloc(5 * 4 * 4)
	require.NoError(t, net.Predict(r.Stream, scores, r.Upload(pixels), 5))
	want := reference{widths: []int{16, 8, 4}, params: net.download(r, func(l layer) []device.View { return []device.View{l.weight, l.bias} })}
	for i, got := range dtype.As[float32](r.Download(scores)) {
		require.InDelta(t, want.logits(inputs[i/4])[i%4], got, 1e-5)
	}
	require.ErrorContains(t, net.Predict(r.Stream, scores, r.Upload(pixels), 4), "images have")
	require.ErrorContains(t, net.Predict(r.Stream, scores.Slice(0, 4), r.Upload(pixels), 5), "scores have")
}

func TestSamplesWithoutLabelTeachNothing(t *testing.T) {
	r := kerneltest.CPU(t)
	o := Options{Inputs: 6, Classes: 4, MaxBatch: 3, Labels: dtype.Int32}
	net := newNetwork(t, r, o)
	pixels, _ := samples(1, 3, 6, 4)
	require.NoError(t, net.Step(r.Stream, r.Upload(pixels), r.Upload(dtype.Bytes([]int32{-1, -100, 4})), 3))
	report, err := net.Report(t.Context(), r.Stream)
	require.NoError(t, err)
	require.Zero(t, report.Loss)
	require.Zero(t, report.Accuracy)
	for _, g := range dtype.As[float32](r.Download(net.grads)) {
		require.Zero(t, g)
	}
}

// The newest loss may be read on the device without waiting for the epoch's Report.
func TestTheNewestLossIsTheReportsLast(t *testing.T) {
	r := kerneltest.CPU(t)
	net := newNetwork(t, r, Options{Inputs: 6, Classes: 4, MaxBatch: 3})
	pixels, labels := samples(1, 3, 6, 4)
	images, labelView := r.Upload(pixels), r.Upload(labels)
	require.Zero(t, net.Loss())
	var losses []float32
	for range 3 {
		require.NoError(t, net.Step(r.Stream, images, labelView, 3))
		losses = append(losses, dtype.As[float32](r.Download(net.Loss()))...)
	}
	report, err := net.Report(t.Context(), r.Stream)
	require.NoError(t, err)
	require.Equal(t, report.Losses, losses)
	require.Zero(t, net.Loss())
}

// No layer is wide enough for gonum to spread a product over goroutines, which it
// allocates.
func TestStepAllocatesNothing(t *testing.T) {
	const n, inputs = 32, 64
	r := kerneltest.CPU(t)
	net := newNetwork(t, r, Options{Inputs: inputs, Classes: 10, MaxBatch: n, Hidden: []int{48}})
	pixels, labels := samples(1, n, inputs, 10)
	images, labelView := r.Upload(pixels), r.Upload(labels)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		err := net.Step(r.Stream, images, labelView, n)
		if err == nil {
			err = r.Stream.Synchronize(t.Context())
		}
		if err != nil {
			panic(err)
		}
	}))
}

func TestMistakes(t *testing.T) {
	r := kerneltest.CPU(t)
	_, err := New(r.Stream, Options{
		Hidden: []int{0}, Images: dtype.Int8, Labels: dtype.Bool, LearningRate: -1, Std: -1, DecaySteps: -1, ReportSteps: -1,
	})
	for _, part := range []string{"Inputs is 0", "Classes is 0", "MaxBatch is 0", "Hidden[0] is 0", "Images is int8", "Labels is bool",
		"LearningRate is -1", "Std is -1", "DecaySteps is -1", "ReportSteps is -1"} {
		require.ErrorContains(t, err, part)
	}
	net := newNetwork(t, r, Options{Inputs: 2, Classes: 2, MaxBatch: 2, ReportSteps: 1})
	require.ErrorContains(t, net.Step(r.Stream, r.Alloc(6), r.Alloc(3), 3), "batch of 3 samples, want 1 to 2")
	require.ErrorContains(t, net.Step(r.Stream, r.Alloc(6), r.Alloc(2), 2), "images have 6 bytes, want 4")
	require.ErrorContains(t, net.Step(r.Stream, r.Alloc(4), r.Alloc(3), 2), "labels have 3 bytes, want 2")
	require.NoError(t, net.Eval(r.Stream, r.Alloc(4), r.Alloc(2), 2))
	require.ErrorIs(t, net.Step(r.Stream, r.Alloc(4), r.Alloc(2), 2), ErrReportDue)
}

func TestRefusedMemoryLeavesNothingBehind(t *testing.T) {
	r := kerneltest.CPU(t)
	before := r.Device.Usage()
	_, err := New(r.Stream, Options{Inputs: math.MaxInt >> 23, Classes: 1 << 10, MaxBatch: 1})
	require.ErrorIs(t, err, device.ErrOutOfMemory)
	after := r.Device.Usage()
	after.Allocations = before.Allocations
	require.Equal(t, before, after)
}

func newNetwork(t testing.TB, r *kerneltest.Rig, o Options) *Network {
	net, err := New(r.Stream, o)
	require.NoError(t, err)
	r.Owns(net)
	return net
}

// train trains for some epochs on 310 samples, which don't divide by the batch,
// and returns the first and the last report.
func train(t *testing.T, r *kerneltest.Rig, o Options, epochs int) (first, last Report) {
	return trainBy(t, r, o, epochs, (*Network).Step)
}

func trainBy(t *testing.T, r *kerneltest.Rig, o Options, epochs int, step func(*Network, *device.Stream, device.View, device.View, int) error) (first, last Report) {
	const count = 310
	net := newNetwork(t, r, o)
	pixels, labels := samples(2, count, o.Inputs, o.Classes)
	images, labelView := r.Upload(pixels), r.Upload(labels)
	for e := range epochs {
		for i := 0; i < count; i += o.MaxBatch {
			n := min(o.MaxBatch, count-i)
			require.NoError(t, step(net, r.Stream,
				images.Slice(int64(i*o.Inputs), int64(n*o.Inputs)), labelView.Slice(int64(i), int64(n)), n))
		}
		report, err := net.Report(t.Context(), r.Stream)
		require.NoError(t, err)
		if e == 0 {
			first = report
		}
		last = report
	}
	return first, last
}

// inTwo is a step as its two parts, with the scalars uploaded in between.
func inTwo(r *kerneltest.Rig) func(*Network, *device.Stream, device.View, device.View, int) error {
	return func(net *Network, s *device.Stream, images, labels device.View, n int) error {
		scalars, err := net.Next(n)
		if err != nil {
			return err
		}
		memory := r.Upload(binary.LittleEndian.AppendUint32(dtype.Bytes([]float32{scalars.Rate, scalars.Epsilon}), scalars.Place))
		return net.Submit(s, images, labels, n, memory)
	}
}

func TestAStepInTwoPartsIsTheStep(t *testing.T) {
	o := Options{Inputs: 100, Classes: 10, MaxBatch: 64, Hidden: []int{129, 33}, Seed: 1, DecaySteps: 25}
	_, want := train(t, kerneltest.CPU(t), o, 5)
	r := kerneltest.CPU(t)
	_, got := trainBy(t, r, o, 5, inTwo(r))
	require.Equal(t, want, got)

	net := newNetwork(t, r, Options{Inputs: 2, Classes: 2, MaxBatch: 2})
	require.ErrorContains(t, net.Submit(r.Stream, r.Alloc(4), r.Alloc(2), 2, r.Alloc(8)), "scalars have 8 bytes, want 12")
}

// samples are random pixels, and labels that say which of as many groups of pixels
// is the brightest.
func samples(seed uint64, n, inputs, classes int) (pixels, labels []byte) {
	random := rand.New(rand.NewPCG(seed, 9))
	for range n {
		sums := make([]int, classes)
		best := 0
		for i := range inputs {
			v := byte(random.Uint32())
			pixels = append(pixels, v)
			sums[i%classes] += int(v)
		}
		for c, s := range sums {
			if s > sums[best] {
				best = c
			}
		}
		labels = append(labels, byte(best))
	}
	return pixels, labels
}

func normalized(pixels, labels []byte, o Options) (inputs [][]float64, numbers []int) {
	for i, label := range labels {
		var row []float64
		for _, v := range pixels[i*o.Inputs:][:o.Inputs] {
			row = append(row, (float64(v)/255-float64(o.Mean))/float64(o.Std))
		}
		inputs = append(inputs, row)
		numbers = append(numbers, int(label))
	}
	return inputs, numbers
}

// download is the contents of the views that pick takes of each layer, in order.
func (net *Network) download(r *kerneltest.Rig, pick func(layer) []device.View) []float64 {
	var out []float64
	for _, l := range net.layers {
		for _, v := range pick(l) {
			for _, x := range dtype.As[float32](r.Download(v)) {
				out = append(out, float64(x))
			}
		}
	}
	return out
}

// A step in parts learns what a whole one does: the mean of the parts' gradients is the
// batch's own, but for the order of the sums.
func TestPartsLearnAsTheWhole(t *testing.T) {
	const n, parts = 12, 3
	o := Options{Inputs: 6, Classes: 4, MaxBatch: n, Hidden: []int{7}, Seed: 3}
	pixels, labels := samples(1, n, o.Inputs, o.Classes)
	r := kerneltest.CPU(t)
	whole, cut := newNetwork(t, r, o), newNetwork(t, r, o)
	images, numbers := r.Upload(pixels), r.Upload(labels)
	gradients := r.Alloc(parts * int(cut.GradientBytes()))
	for range 5 {
		require.NoError(t, whole.Step(r.Stream, images, numbers, n))
		for i := range int64(parts) {
			rows := func(v device.View) device.View { return v.Slice(i*v.Size()/parts, v.Size()/parts) }
			require.NoError(t, cut.Gradient(r.Stream, rows(gradients), rows(images), rows(numbers), n/parts))
		}
		require.NoError(t, cut.Update(r.Stream, gradients, parts))
	}
	require.Equal(t, 5, cut.Steps())
	want, got := dtype.As[float32](r.Download(whole.params)), dtype.As[float32](r.Download(cut.params))
	require.InDeltaSlice(t, want, got, 1e-5)

	require.Error(t, cut.Update(r.Stream, gradients, 2))
	require.Error(t, cut.Gradient(r.Stream, gradients, images, numbers, n))
}
