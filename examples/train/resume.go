package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leat-go/leat/examples/internal/checkpoint"
	"github.com/leat-go/leat/prefetch"
)

// saving is the part of a checkpoint that is neither the network nor the place in the data.
type saving struct {
	// Losses are those of the epochs that have ended, Accuracy is that of the newest test.
	Losses   []float64
	Accuracy float64

	options checkpoint.Options
	owed    bool // a checkpoint was due at the last step of an epoch
}

// resume places the pipeline where the checkpoint is, and returns what there is of the model.
func (t *training) resume(o checkpoint.Options) (model []byte, err error) {
	t.saving.options = o
	state, model, err := o.Load()
	if err != nil || model == nil {
		return nil, err
	}
	fmt.Printf("goes on in epoch %d behind sample %d\n", state.Epoch+1, state.Position)
	return model, t.pf.Restore(state)
}

// restore gives the network what it had at the checkpoint.
func (t *training) restore(ctx context.Context, model []byte) error {
	if model == nil {
		return nil
	}
	line, rest, ok := bytes.Cut(model, []byte("\n"))
	if !ok {
		return errors.New("the checkpoint has no network")
	}
	if err := json.Unmarshal(line, &t.saving); err != nil {
		return err
	}
	return t.net.Restore(ctx, t.compute, bytes.NewReader(rest))
}

// stepEnded saves a checkpoint where one is due. At the last step of an epoch it waits for the
// epoch's end: the State is that of the next epoch already, whose losses are others.
func (t *training) stepEnded(ctx context.Context, batch prefetch.Batch) error {
	if !t.saving.options.Due(t.net.Steps()) {
		return nil
	}
	if batch.Position().Batch == t.batches-1 {
		t.saving.owed = true
		return nil
	}
	return t.save(ctx)
}

// epochEnded saves what is owed, and the end.
func (t *training) epochEnded(ctx context.Context) error {
	if end := len(t.saving.Losses) == t.pf.Plan().Epochs; t.saving.options.Path == "" || !t.saving.owed && !end {
		return nil
	}
	t.saving.owed = false
	return t.save(ctx)
}

func (t *training) save(ctx context.Context) error {
	model, err := json.Marshal(t.saving)
	if err != nil {
		return err
	}
	b := bytes.NewBuffer(append(model, '\n'))
	if err := t.net.Save(ctx, t.compute, b); err != nil {
		return err
	}
	return checkpoint.Save(t.saving.options.Path, t.pf.State(), b.Bytes())
}
