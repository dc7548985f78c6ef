package nn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels"
)

// ErrReportDue: Options.ReportSteps steps were submitted since the newest Report.
var ErrReportDue = errors.New("nn: no room for another loss, call Report")

// Scalars are what changes from step to step, as the kernels of Submit read it in device
// memory.
type Scalars struct {
	// Rate and Epsilon are Adam's, with its corrections for the step.
	Rate, Epsilon float32
	// Place is where the step's loss goes.
	Place uint32
}

// Step submits one step of training on n samples to s and waits for nobody.
// images is [n, Inputs] of Options.Images, labels is [n] of Options.Labels; both
// are borrowed until s has run the step. The loss is the mean over the n samples,
// however many a full batch has. Step allocates nothing; of the kernels, only the
// CPU's matrix product does, for goroutines over which gonum spreads a large one.
func (net *Network) Step(s *device.Stream, images, labels device.View, n int) error {
	if err := net.check(images, labels, n); err != nil {
		return err
	}
	sc, err := net.Next(n)
	if err != nil {
		return err
	}
	return net.train(s, images, labels, n, changing{values: sc})
}

// Next is the host's part of a step on n samples: it counts the step, and returns the
// Scalars that Submit's are to be.
func (net *Network) Next(n int) (Scalars, error) {
	place, err := net.place(n)
	if err != nil {
		return Scalars{}, err
	}
	net.steps++
	sc := adamScalars(net.rate(), net.steps)
	sc.Place = place
	return sc, nil
}

// Submit is the device's part of the step that Next has begun. Its arguments are Step's,
// and Scalars in device memory. It changes nothing on the host, so that it may be captured
// once and replayed.
func (net *Network) Submit(s *device.Stream, images, labels device.View, n int, scalars device.View) error {
	if want := int64(binary.Size(Scalars{})); scalars.Size() != want {
		return fmt.Errorf("nn: scalars have %d bytes, want %d", scalars.Size(), want)
	}
	if err := net.check(images, labels, n); err != nil {
		return err
	}
	return net.train(s, images, labels, n, changing{memory: scalars})
}

func (net *Network) train(s *device.Stream, images, labels device.View, n int, c changing) error {
	in, err := net.forward(s, images, labels, n, c)
	if err != nil {
		return err
	}
	if err := net.backward(s, in, n); err != nil {
		return err
	}
	return adam(s, net.params, net.grads, net.moment1, net.moment2, c)
}

// Eval submits the classification of n samples, of which nothing is learnt.
// Arguments are Step's.
func (net *Network) Eval(s *device.Stream, images, labels device.View, n int) error {
	_, err := net.evaluate(s, images, labels, n)
	return err
}

// evaluate is Eval, and returns what backward is to be given.
func (net *Network) evaluate(s *device.Stream, images, labels device.View, n int) (device.View, error) {
	if err := net.check(images, labels, n); err != nil {
		return device.View{}, err
	}
	place, err := net.place(n)
	if err != nil {
		return device.View{}, err
	}
	return net.forward(s, images, labels, n, changing{values: Scalars{Place: place}})
}

// changing are Scalars, as values for a launch or in device memory.
type changing struct {
	values Scalars
	memory device.View // empty where the values count
}

// place takes the next place for a step's loss.
func (net *Network) place(n int) (uint32, error) {
	if net.used == net.opts.ReportSteps {
		return 0, ErrReportDue
	}
	net.samples[net.used] = n
	net.used++
	return uint32(net.used - 1), nil
}

// rate is the learning rate of the step being submitted.
func (net *Network) rate() float64 {
	o := net.opts
	if o.DecaySteps == 0 {
		return o.LearningRate
	}
	return o.LearningRate * max(0, 1-float64(net.steps-1)/float64(o.DecaySteps))
}

// forward leaves the activations, the loss, and the loss's gradient with respect
// to the last layer's output, in the views that backward reads. It returns the batch as the
// first layer read it.
func (net *Network) forward(s *device.Stream, images, labels device.View, n int, c changing) (device.View, error) {
	in, err := net.input(s, images, n)
	if err != nil {
		return device.View{}, err
	}
	scores, err := net.scores(s, in, n)
	if err != nil {
		return device.View{}, err
	}
	targets := batch(net.targets, n, net.opts.Classes)
	err = kernels.OneHot(s, targets, labels, kernels.OneHotParams{Labels: net.opts.Labels, Classes: net.opts.Classes})
	if err != nil {
		return device.View{}, err
	}
	last := &net.layers[len(net.layers)-1]
	return in, crossEntropy(s, net.losses, net.correct, batch(last.activeGrad, n, last.out), scores, targets, n, last.out, c)
}

// Predict submits the computation of n samples' scores, one for each class: the largest is
// that of the most likely one. images is Step's, scores is float32 [n, Classes].
func (net *Network) Predict(s *device.Stream, scores, images device.View, n int) error {
	if err := net.checkImages(images, n); err != nil {
		return err
	}
	if want := int64(n) * int64(net.opts.Classes) * 4; scores.Size() != want {
		return fmt.Errorf("nn: scores have %d bytes, want %d for %d samples of %d classes", scores.Size(), want, n, net.opts.Classes)
	}
	in, err := net.input(s, images, n)
	if err != nil {
		return err
	}
	last, err := net.scores(s, in, n)
	if err != nil {
		return err
	}
	return s.CopyD2D(scores, last)
}

// scores is the last layer's activations, if in is what the first layer reads.
func (net *Network) scores(s *device.Stream, in device.View, n int) (device.View, error) {
	for i := range net.layers {
		l := &net.layers[i]
		out := batch(l.activation, n, l.out)
		if err := matMul(s, out, in, l.weight, shape{m: n, n: l.out, k: l.in}, plain); err != nil {
			return device.View{}, err
		}
		if err := addBias(s, out, l.bias, n, l.out, i < len(net.layers)-1); err != nil {
			return device.View{}, err
		}
		in = out
	}
	return in, nil
}

// backward leaves the gradients of all parameters in grads. images is what forward returned.
func (net *Network) backward(s *device.Stream, images device.View, n int) error {
	for i := len(net.layers) - 1; i >= 0; i-- {
		l := &net.layers[i]
		grad := batch(l.activeGrad, n, l.out)
		in := images
		if i > 0 {
			in = batch(net.layers[i-1].activation, n, l.in)
		}
		if err := matMul(s, l.gradWeight, in, grad, shape{m: l.in, n: l.out, k: n}, transposeA); err != nil {
			return err
		}
		if err := columnSum(s, l.gradBias, grad, n, l.out); err != nil {
			return err
		}
		if i == 0 {
			return nil
		}
		gradIn := batch(net.layers[i-1].activeGrad, n, l.in)
		if err := matMul(s, gradIn, grad, l.weight, shape{m: n, n: l.in, k: l.out}, transposeB); err != nil {
			return err
		}
		if err := reluBackward(s, gradIn, in); err != nil {
			return err
		}
	}
	return nil
}

// input is the batch as float32.
func (net *Network) input(s *device.Stream, images device.View, n int) (device.View, error) {
	if net.opts.Images == dtype.Float32 {
		return images, nil
	}
	in := batch(net.inputs, n, net.opts.Inputs)
	mean, deviation := [1]float32{net.opts.Mean}, [1]float32{net.opts.Std}
	return in, kernels.Normalize(s, in, images, kernels.NormalizeParams{Mean: mean[:], Std: deviation[:]})
}

func (net *Network) check(images, labels device.View, n int) error {
	if err := net.checkImages(images, n); err != nil {
		return err
	}
	if want := int64(n) * int64(net.opts.Labels.Size()); labels.Size() != want {
		return fmt.Errorf("nn: labels have %d bytes, want %d for %d samples of %v", labels.Size(), want, n, net.opts.Labels)
	}
	return nil
}

func (net *Network) checkImages(images device.View, n int) error {
	o := &net.opts
	if n < 1 || n > o.MaxBatch {
		return fmt.Errorf("nn: batch of %d samples, want 1 to %d", n, o.MaxBatch)
	}
	if want := int64(n) * int64(o.Inputs) * int64(o.Images.Size()); images.Size() != want {
		return fmt.Errorf("nn: images have %d bytes, want %d for %d samples of %d %v", images.Size(), want, n, o.Inputs, o.Images)
	}
	return nil
}

// batch is the first n rows of a float32 matrix.
func batch(v device.View, n, width int) device.View { return v.Slice(0, int64(n)*int64(width)*4) }
