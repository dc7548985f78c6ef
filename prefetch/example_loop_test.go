package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/auto"
	"github.com/leat-go/leat/kernels"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// train is the loop of README.md, word for word.
func train(ctx context.Context, dataset loader.Dataset) error {
	dev, err := auto.Open("") // the first GPU if there is one, else the CPU device
	if err != nil {
		return err
	}
	defer dev.Close() // last: deferred calls run in reverse order
	compute, err := dev.NewStream(device.StreamOptions{})
	if err != nil {
		return err
	}
	defer compute.Close()
	model, err := newModel(dev)
	if err != nil {
		return err
	}
	defer model.Close()

	ld, err := loader.New(dataset, 256, loader.Options{Shuffle: true, Seed: 1, Epochs: 10})
	if err != nil {
		return err
	}
	pf, err := prefetch.New(compute, ld, prefetch.Options{})
	if err != nil {
		return err
	}
	defer pf.Close()
	for batch, err := range pf.All(ctx) { // ten epochs, or what is left of them
		if err != nil {
			return err
		}
		// Step submits its work to the batch's stream, and does not wait for it.
		if err := model.Step(batch.Stream(), batch); err != nil {
			return err
		}
	}
	return compute.Synchronize(ctx) // waits for the work, and returns its error if it failed
}

// A model has memory on the device and submits work that uses a batch.
type model struct {
	sum     *device.Buffer
	samples int
}

func newModel(dev *device.Device) (*model, error) {
	sum, err := dev.Alloc(8)
	return &model{sum: sum}, err
}

func (m *model) Step(stream *device.Stream, batch prefetch.Batch) error {
	m.samples += batch.Len()
	return kernels.Checksum(stream, m.sum.View(), batch.Field("y").View)
}

// Close first waits for work that may still use the memory.
func (m *model) Close() error {
	fmt.Println(m.samples, "samples")
	return errors.Join(m.sum.View().Device().Synchronize(context.Background()), m.sum.Close())
}

// A training loop from opening the device to closing it.
func Example() {
	if err := train(context.Background(), Squares{}); err != nil {
		log.Fatal(err)
	}
	// Output: 100 samples
}
