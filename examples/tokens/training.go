package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/internal/checkpoint"
	"github.com/leat-go/leat/examples/train/nn"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A training is the device, the pipeline on it and the model.
type training struct {
	config  config
	out     io.Writer
	dev     *device.Device
	compute *device.Stream
	pf      *prefetch.Prefetcher
	inputs  device.View // float32 [batch·window, vocabulary], one-hot
	model   *nn.Network // of one token: its embedding, and from that the scores of the next
	batches int
	losses  []float64 // of the epochs that have ended
	owed    bool      // a checkpoint was due at the last step of an epoch
	closers []func() error
}

func newTraining(ctx context.Context, c config, out io.Writer) (t *training, err error) {
	t = &training{config: c, out: out}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	data, file, err := windows(ctx, c.file, c.window)
	if err != nil {
		return t, err
	}
	t.closers = append(t.closers, file.Close)
	fmt.Fprintf(out, "%d tokens, %d windows of %d\n", file.Tokens(), data.Len(), c.window)
	ld, err := loader.New(data, c.batch, c.loader)
	if err != nil {
		return t, err
	}
	t.batches, _ = ld.Batches()
	if t.dev, err = auto.Open(c.device); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.dev.Close)
	if t.compute, err = t.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.compute.Close)
	if t.pf, err = prefetch.New(t.compute, ld, c.prefetch); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.pf.Close)
	rows := c.batch * c.window
	memory, err := t.dev.Alloc(int64(rows) * vocabulary * 4)
	if err != nil {
		return t, err
	}
	t.closers = append(t.closers, memory.Close)
	t.inputs = memory.View()
	t.model, err = nn.New(t.compute, nn.Options{
		Inputs: vocabulary, Hidden: []int{c.width}, Classes: vocabulary, MaxBatch: rows,
		Images: dtype.Float32, Seed: c.loader.Seed, ReportSteps: t.batches,
	})
	if err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.model.Close)
	return t, t.resume(ctx)
}

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

// train is the loop over the epochs.
func (t *training) train(ctx context.Context) error {
	for _, batches := range t.pf.Epochs(ctx) {
		for batch, err := range batches {
			if err != nil {
				return err
			}
			if err := t.learn(batch); err != nil {
				return err
			}
			if err := t.stepEnded(ctx, batch); err != nil {
				return err
			}
		}
		report, err := t.model.Report(ctx, t.compute)
		if err != nil {
			return err
		}
		t.losses = append(t.losses, report.Loss)
		if err := t.epochEnded(ctx); err != nil {
			return err
		}
	}
	for epoch, loss := range t.losses { // all digits, so that two runs can be compared
		fmt.Fprintf(t.out, "epoch %d: loss %v\n", epoch+1, loss)
	}
	return nil
}

// learn submits a step on one batch. Each token of it is a sample of the model.
func (t *training) learn(batch prefetch.Batch) error {
	input, target := batch.Field("input").View, batch.Field("target").View
	rows := batch.Len() * t.config.window
	inputs := t.inputs.Slice(0, int64(rows)*vocabulary*4)
	if err := kernels.OneHot(batch.Stream(), inputs, input, kernels.OneHotParams{Labels: dtype.Uint8, Classes: vocabulary}); err != nil {
		return err
	}
	return t.model.Step(batch.Stream(), inputs, target, rows)
}

// resume places the pipeline and the model where the checkpoint is, if there is one.
func (t *training) resume(ctx context.Context) error {
	state, saved, err := t.config.checkpoint.Load()
	if err != nil || saved == nil {
		return err
	}
	fmt.Fprintf(t.out, "goes on in epoch %d behind window %d\n", state.Epoch+1, state.Position)
	line, rest, _ := bytes.Cut(saved, []byte("\n"))
	if err := json.Unmarshal(line, &t.losses); err != nil {
		return fmt.Errorf("the losses in the checkpoint: %w", err)
	}
	if err := t.pf.Restore(state); err != nil {
		return err
	}
	return t.model.Restore(ctx, t.compute, bytes.NewReader(rest))
}

// stepEnded saves a checkpoint where one is due. At the last step of an epoch it waits for the
// epoch's end: the State is that of the next epoch already, whose losses are others.
func (t *training) stepEnded(ctx context.Context, batch prefetch.Batch) error {
	if !t.config.checkpoint.Due(t.model.Steps()) {
		return nil
	}
	if batch.Position().Batch == t.batches-1 {
		t.owed = true
		return nil
	}
	return t.save(ctx)
}

// epochEnded saves what is owed, and the end.
func (t *training) epochEnded(ctx context.Context) error {
	if end := len(t.losses) == t.config.loader.Epochs; t.config.checkpoint.Path == "" || !t.owed && !end {
		return nil
	}
	t.owed = false
	return t.save(ctx)
}

func (t *training) save(ctx context.Context) error {
	text, err := json.Marshal(t.losses)
	if err != nil {
		return err
	}
	b := bytes.NewBuffer(append(text, '\n'))
	if err := t.model.Save(ctx, t.compute, b); err != nil {
		return err
	}
	return checkpoint.Save(t.config.checkpoint.Path, t.pf.State(), b.Bytes())
}
