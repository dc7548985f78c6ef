package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/device/meter"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/examples/train/nn"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/capture"
	"github.com/leat-go/leat/prefetch/chain"
)

// testBatch is the batch size of the evaluation, where only speed depends on it.
const testBatch = 1000

// A summary is the line that -json prints.
type summary struct {
	Device              string    `json:"device"`
	Epochs              int       `json:"epochs"`
	Samples             int64     `json:"samples"`
	Accuracy            float64   `json:"accuracy"`
	Loss                float64   `json:"loss"`
	Losses              []float64 `json:"losses"`
	Seconds             float64   `json:"seconds"`
	SamplesPerSecond    float64   `json:"samples_per_second"`
	EpochSeconds        []float64 `json:"epoch_seconds"` // without the evaluation
	WaitProducerSeconds float64   `json:"wait_producer_seconds"`
	WaitCopySeconds     float64   `json:"wait_copy_seconds"`
	WaitSlotSeconds     float64   `json:"wait_slot_seconds"`
	Depth               int       `json:"depth"`
	PinnedBytes         int64     `json:"pinned_bytes"`
	DeviceBytes         int64     `json:"device_bytes"`
	Replays             int64     `json:"replays"` // steps that were launched as a graph alone
}

// A training is the device, the pipeline on it and the network.
type training struct {
	dev     *device.Device
	compute *device.Stream
	pf      *prefetch.Prefetcher // training samples
	test    *prefetch.Prefetcher // test samples
	net     *nn.Network
	step    *capture.Step[nn.Scalars] // nil without -graph
	losses  *meter.Meter[float32]     // of the steps, some time after they were submitted
	batches int
	closers []func() error // in order of making
	record  *observe.Recorder
	live    live

	data      loader.Dataset // of training samples
	transform *prefetch.Transform

	saving    saving
	afterStep func() // of tests
}

func newTraining(ctx context.Context, c config) (t *training, err error) {
	train, test, err := mnist.Open(ctx, c.data)
	if err != nil {
		return nil, err
	}
	t = &training{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	ld, err := loader.New(train, c.batchSize, c.loader)
	if err != nil {
		return t, err
	}
	testLoader, err := loader.New(test, testBatch, loader.Options{Workers: c.loader.Workers})
	if err != nil {
		return t, err
	}
	t.batches, _ = ld.Batches()
	if t.dev, err = auto.Open(c.device); err != nil {
		return t, err
	}
	t.onClose(t.dev.Close)
	if t.compute, err = t.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return t, err
	}
	t.onClose(t.compute.Close)
	// Images cross the bus as uint8 and are normalised on the device, off the compute
	// stream. Black stays 0: the matrix product on the CPU skips zeros.
	transform, err := chain.New(train.Fields(), chain.Normalize("image", chain.NormalizeOptions{Std: []float32{0.3}}))
	if err != nil {
		return t, err
	}
	c.prefetch.Transform = transform
	t.data, t.transform = train, transform
	t.record = observe.NewRecorder(observe.Options{})
	c.prefetch.Recorder = t.record
	if t.pf, err = prefetch.New(t.compute, ld, c.prefetch); err != nil {
		return t, err
	}
	t.onClose(t.pf.Close)
	model, err := t.resume(c.checkpoint)
	if err != nil {
		return t, err
	}
	if err := t.pf.Start(ctx); err != nil { // it reads the first batches while the rest is made
		return t, err
	}
	if t.test, err = prefetch.New(t.compute, testLoader, prefetch.Options{Transform: transform, Recorder: observe.NewRecorder(observe.Options{})}); err != nil {
		return t, err
	}
	t.onClose(t.test.Close)
	t.net, err = nn.New(t.compute, nn.Options{
		Inputs: 28 * 28, Classes: 10, MaxBatch: max(c.batchSize, testBatch), Seed: c.loader.Seed,
		Images:     dtype.Float32,
		DecaySteps: c.epochs * t.batches, ReportSteps: max(t.batches, 10000/testBatch) + 1,
	})
	if err != nil {
		return t, err
	}
	t.onClose(t.net.Close)
	if err := t.restore(ctx, model); err != nil {
		return t, err
	}
	if c.graph {
		if t.step, err = capture.New[nn.Scalars](t.pf, t.submit, capture.Options{}); err != nil {
			return t, err
		}
		t.onClose(t.step.Close)
	}
	if t.losses, err = meter.New[float32](t.dev); err != nil {
		return t, err
	}
	t.onClose(t.losses.Close)
	return t, nil
}

func (t *training) onClose(f func() error) { t.closers = append(t.closers, f) }

// close frees what newTraining made, last first, when the device has come to rest.
func (t *training) close() error {
	var errs []error
	if t.dev != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, t.dev.Synchronize(ctx))
	}
	for i := len(t.closers) - 1; i >= 0; i-- {
		errs = append(errs, t.closers[i]())
	}
	return errors.Join(errs...)
}

// train is the loop over the epochs, each followed by an evaluation.
func (t *training) train(ctx context.Context) (summary, error) {
	start := time.Now()
	var epochSeconds []float64
	for epoch, batches := range t.pf.Epochs(ctx) {
		from := time.Now()
		trained, err := t.epoch(ctx, epoch, batches)
		if err != nil {
			return summary{}, err
		}
		took := time.Since(from).Seconds()
		tested, err := t.evaluate(ctx)
		if err != nil {
			return summary{}, err
		}
		fmt.Printf("epoch %d: loss %.5f, test accuracy %.2f%%, %.3f s of training\n", epoch+1, trained.Loss, 100*tested.Accuracy, took)
		epochSeconds = append(epochSeconds, took)
		t.saving.Losses, t.saving.Accuracy = append(t.saving.Losses, trained.Loss), tested.Accuracy
		if err := t.epochEnded(ctx); err != nil {
			return summary{}, err
		}
	}
	seconds := time.Since(start).Seconds()
	stats, plan := t.pf.Stats(), t.pf.Plan()
	var report capture.Report
	if t.step != nil {
		report = t.step.Report()
	}
	return summary{
		Device: t.dev.Name(), Epochs: plan.Epochs, Samples: stats.Samples,
		Accuracy: t.saving.Accuracy, Loss: t.saving.Losses[len(t.saving.Losses)-1], Losses: t.saving.Losses,
		Seconds: seconds, SamplesPerSecond: float64(stats.Samples) / seconds, EpochSeconds: epochSeconds,
		WaitProducerSeconds: stats.WaitProducer.Seconds(), WaitCopySeconds: stats.WaitCopy.Seconds(),
		WaitSlotSeconds: stats.WaitSlot.Seconds(),
		Depth:           plan.Depth, PinnedBytes: plan.HostBytes, DeviceBytes: plan.DeviceBytes,
		Replays: report.Replays,
	}, nil
}

// epoch is the training loop: every turn submits one step and waits for nobody.
func (t *training) epoch(ctx context.Context, epoch int, batches iter.Seq2[prefetch.Batch, error]) (nn.Report, error) {
	bar := progressbar.NewOptions(t.batches,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetVisibility(isTerminal(os.Stderr)), // in a log each change would be a line
		progressbar.OptionSetDescription(fmt.Sprintf("epoch %d", epoch+1)),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString("batches"),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	defer func() { _ = bar.Clear() }() // an error's line stands alone
	for batch, err := range batches {
		if err != nil {
			return nn.Report{}, err
		}
		if err := t.learn(batch); err != nil {
			return nn.Report{}, err
		}
		if err := t.stepEnded(ctx, batch); err != nil {
			return nn.Report{}, err
		}
		if t.afterStep != nil {
			t.afterStep()
		}
		if err := t.losses.Push(batch.Stream(), t.net.Loss()); err != nil {
			return nn.Report{}, err
		}
		loss, _, err := t.losses.Latest()
		if err != nil {
			return nn.Report{}, err
		}
		bar.Describe(fmt.Sprintf("epoch %d, loss %.3f%s", epoch+1, loss, t.live.line(t.pf)))
		if err := bar.Add(1); err != nil {
			return nn.Report{}, err
		}
	}
	return t.net.Report(ctx, t.compute)
}

// isTerminal is whether a file is one, or another device of characters.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// learn submits the step on one batch, kernel by kernel or as a graph.
func (t *training) learn(batch prefetch.Batch) error {
	if t.step == nil {
		return t.net.Step(batch.Stream(), batch.Field("image").View, batch.Field("label").View, batch.Len())
	}
	scalars, err := t.net.Next(batch.Len())
	if err != nil {
		return err
	}
	return t.step.Run(batch, scalars)
}

// submit is the part of a step that is captured. What changes from step to step is in
// scalars.
func (t *training) submit(s *device.Stream, batch capture.Batch, scalars device.View) error {
	return t.net.Submit(s, batch.Field("image").View, batch.Field("label").View, batch.Len(), scalars)
}

// evaluate is a pass over all test samples.
func (t *training) evaluate(ctx context.Context) (nn.Report, error) {
	for batch, err := range t.test.Pass(ctx) {
		if err != nil {
			return nn.Report{}, err
		}
		err := t.net.Eval(batch.Stream(), batch.Field("image").View, batch.Field("label").View, batch.Len())
		if err != nil {
			return nn.Report{}, err
		}
	}
	return t.net.Report(ctx, t.compute)
}
