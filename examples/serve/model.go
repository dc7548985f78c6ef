package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/examples/train/nn"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/serve"
)

const (
	pixels     = 28 * 28
	digits     = 10
	epochs     = 2
	trainBatch = 256
	testBatch  = 1000
	steps      = epochs * (60000 + trainBatch - 1) / trainBatch
)

// model is a network on a device.
type model struct {
	config  config
	dev     *device.Device
	compute *device.Stream
	net     *nn.Network
	closers []func() error // in order of making
}

func newModel(c config) (m *model, err error) {
	m = &model{config: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.dev, err = auto.Open(c.device); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.dev.Close)
	if m.compute, err = m.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.compute.Close)
	m.net, err = nn.New(m.compute, nn.Options{
		Inputs: pixels, Classes: digits, Hidden: c.hidden, Seed: 1,
		MaxBatch: max(c.batch, testBatch), DecaySteps: steps,
	})
	if err != nil {
		return m, err
	}
	m.closers = append(m.closers, m.net.Close)
	return m, nil
}

// close frees what newModel made, last first, when the device has come to rest.
func (m *model) close() error {
	var errs []error
	if m.dev != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, m.dev.Synchronize(ctx))
	}
	for i := len(m.closers) - 1; i >= 0; i-- {
		errs = append(errs, m.closers[i]())
	}
	return errors.Join(errs...)
}

// train trains for some epochs, and returns how much of the test images the network knows.
func (m *model) train(ctx context.Context, dir string) (accuracy float64, err error) {
	training, test, err := mnist.Open(ctx, dir)
	if err != nil {
		return 0, err
	}
	if _, err := m.pass(ctx, training, trainBatch, loader.Options{Shuffle: true, Seed: 1, Epochs: epochs}, m.net.Step); err != nil {
		return 0, err
	}
	tested, err := m.pass(ctx, test, testBatch, loader.Options{Epochs: 1}, m.net.Eval)
	return tested.Accuracy, err
}

// pass brings all samples to the network.
func (m *model) pass(ctx context.Context, data loader.Dataset, batch int, o loader.Options,
	step func(s *device.Stream, images, labels device.View, n int) error) (r nn.Report, err error) {
	ld, err := loader.New(data, batch, o)
	if err != nil {
		return r, err
	}
	pf, err := prefetch.New(m.compute, ld, prefetch.Options{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pf.Close()) }()
	for b, err := range pf.All(ctx) {
		if err != nil {
			return r, err
		}
		if err := step(b.Stream(), b.Field("image").View, b.Field("label").View, b.Len()); err != nil {
			return r, err
		}
	}
	return m.net.Report(ctx, m.compute)
}

// answer is what is drawn in an image.
type answer struct {
	// Digit is the most likely one.
	Digit int `json:"digit"`
	// Shares say how likely each is; their sum is 1.
	Shares [digits]float32 `json:"shares"`
}

type queue = serve.Queue[[]byte, answer]

// queue answers requests with the network. There is one at a time, since a network's
// activations are those of one batch.
func (m *model) queue(maxBatch int, o serve.Options) (*queue, error) {
	return serve.New(m.compute, maxBatch, serve.Model[[]byte, answer]{
		In: []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{28, 28}}},
		Encode: func(_ context.Context, image []byte, row *loader.Row) error {
			return loader.Write(row, "image", image...)
		},
		Out:    []loader.Field{{Name: "scores", DType: dtype.Float32, Shape: []int{digits}}},
		Decode: decode,
	}, func(b prefetch.Batch, out prefetch.Fields) error {
		return m.net.Predict(b.Stream(), out.Field("scores").View, b.Field("image").View, b.Len())
	}, o)
}

// decode makes shares of scores, by softmax.
func decode(row serve.Answer) (a answer, err error) {
	if err := serve.Copy(a.Shares[:], row, "scores"); err != nil {
		return a, err
	}
	for i, s := range a.Shares {
		if s > a.Shares[a.Digit] {
			a.Digit = i
		}
	}
	top, sum := a.Shares[a.Digit], float32(0)
	for i, s := range a.Shares {
		a.Shares[i] = float32(math.Exp(float64(s - top)))
		sum += a.Shares[i]
	}
	for i := range a.Shares {
		a.Shares[i] /= sum
	}
	return a, nil
}

func (m *model) options() serve.Options {
	return serve.Options{MaxWait: m.config.maxWait, InFlight: m.config.inFlight}
}
