package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/train/nn"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/chain"
)

// training is the device, the pipeline on it and the network.
type training struct {
	dev     *device.Device
	compute *device.Stream
	pf      *prefetch.Prefetcher
	net     *nn.Network
	closers []func() error // in order of making
}

func newTraining(c config, ld *loader.Loader, classes int) (t *training, err error) {
	t = &training{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.dev, err = auto.Open(c.device); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.dev.Close)
	if t.compute, err = t.dev.NewStream(device.StreamOptions{Name: "compute"}); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.compute.Close)
	// Pictures cross the bus as bytes, and become numbers around 0 on the device.
	var fields []loader.Field
	for _, f := range ld.Layout().Written() {
		fields = append(fields, f.Field)
	}
	transform, err := chain.New(fields, chain.Normalize("image", chain.NormalizeOptions{Mean: []float32{0.5}, Std: []float32{0.3}}))
	if err != nil {
		return t, err
	}
	if t.pf, err = prefetch.New(t.compute, ld, prefetch.Options{Transform: transform, Timing: true}); err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.pf.Close)
	batches, _ := ld.Batches()
	t.net, err = nn.New(t.compute, nn.Options{
		Inputs: c.size * c.size * 3, Classes: classes, MaxBatch: c.batch, Seed: c.loader.Seed,
		Images: dtype.Float32, Labels: dtype.Int32, Hidden: []int{32}, ReportSteps: batches + 1,
	})
	if err != nil {
		return t, err
	}
	t.closers = append(t.closers, t.net.Close)
	return t, nil
}

// epoch submits a step for each batch, and waits at the end.
func (t *training) epoch(ctx context.Context, batches iter.Seq2[prefetch.Batch, error]) (nn.Report, error) {
	for batch, err := range batches {
		if err != nil {
			return nn.Report{}, err
		}
		if err := t.net.Step(batch.Stream(), batch.Field("image").View, batch.Field("label").View, batch.Len()); err != nil {
			return nn.Report{}, err
		}
	}
	return t.net.Report(ctx, t.compute)
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
