package gomlx

import (
	"context"
	"errors"
	"iter"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"

	"github.com/leat-go/leat/prefetch"
)

// Options tunes a Dataset. The zero value is ready to use.
type Options struct {
	// Name is what GoMLX calls the dataset, in metrics of evaluations too. "" means "leat".
	Name string
	// Device is the number of the backend's device that tensors are made on.
	Device compute.DeviceNum
	// Mask adds a Bool tensor [rows] behind the labels that says which rows count, which
	// GoMLX's losses and its SparseCategoricalAccuracy take as their mask: false for rows
	// with which loader.Pad fills the last batch. Epochs and Steps then fill up a batch that is
	// short with rows of zeros, and false in the mask, so that all batches have the same
	// shape and nothing is compiled for the last one. Pass leaves it short: GoMLX's mean
	// metrics weigh a batch by all of its rows, so that only then an evaluation is exact. A
	// trainer wants equally many labels of both: give Mask to both or to none.
	Mask bool
}

// A Dataset is a [train.Dataset] of a pipeline's batches. As its pipeline it is for one
// consumer at a time; an Iter during another yields prefetch.ErrBusy. Whoever ranges over it
// owns the tensors: GoMLX's loops and trainers finalize them.
type Dataset struct {
	backend compute.Backend
	options Options
	rows    int      // of a full batch
	fill    bool     // short batches are filled up
	columns []column // those of the inputs, and behind them those of the labels
	inputs  int
	fixed   int // bytes of a full batch in columns of one shape
	// batches is a range of the pipeline under the context that the Dataset was made with:
	// Iter has no parameter for one.
	batches func() iter.Seq2[prefetch.Batch, error]
}

var _ train.Dataset = (*Dataset)(nil)

// Epochs makes a Dataset for Loop.RunEpochs: each Iter yields what is left of the current
// epoch. At an epoch's end the next Iter begins the next one; behind a loop that was left,
// it goes on with the next batch. inputs and labels are names of fields, in the order in
// which the model and the loss want them; a field may be in both. The caller goes on to own
// pf, and closes it. When ctx ends, so does the range, with its error.
//
// The error joins every mistake: a [FieldError] for each field, [ErrNoInputs],
// [ErrDeviceMemory].
func Epochs(ctx context.Context, backend compute.Backend, pf *prefetch.Prefetcher, inputs, labels []string, o Options) (*Dataset, error) {
	return newDataset(backend, pf, inputs, labels, o, o.Mask, func() iter.Seq2[prefetch.Batch, error] { return pf.Batches(ctx) })
}

// Steps is [Epochs] for Loop.RunSteps: an Iter yields all that is left, epoch after epoch,
// for ever if loader.Options.Epochs is 0.
func Steps(ctx context.Context, backend compute.Backend, pf *prefetch.Prefetcher, inputs, labels []string, o Options) (*Dataset, error) {
	return newDataset(backend, pf, inputs, labels, o, o.Mask, func() iter.Seq2[prefetch.Batch, error] { return pf.All(ctx) })
}

// Pass is [Epochs] for Trainer.Eval: each Iter yields the same batches, those of the first
// epoch, also if the last one was left early.
func Pass(ctx context.Context, backend compute.Backend, pf *prefetch.Prefetcher, inputs, labels []string, o Options) (*Dataset, error) {
	return newDataset(backend, pf, inputs, labels, o, false, func() iter.Seq2[prefetch.Batch, error] { return pf.Pass(ctx) })
}

func newDataset(backend compute.Backend, pf *prefetch.Prefetcher, inputs, labels []string, o Options, fill bool,
	batches func() iter.Seq2[prefetch.Batch, error],
) (*Dataset, error) {
	if backend == nil {
		return nil, errors.New("gomlx: no backend")
	}
	if pf == nil {
		return nil, errors.New("gomlx: no pipeline")
	}
	if o.Name == "" {
		o.Name = "leat"
	}
	plan := pf.Plan()
	in, errIn := columns(plan, inputs, false, fill)
	lab, errLab := columns(plan, labels, true, fill)
	errs := []error{errIn, errLab}
	if len(inputs) == 0 {
		errs = append(errs, ErrNoInputs)
	}
	if plan.Device != "" {
		errs = append(errs, ErrDeviceMemory)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d := &Dataset{
		backend: backend, options: o, rows: plan.BatchSize, fill: fill,
		columns: append(in, lab...), inputs: len(in), batches: batches,
	}
	for _, c := range d.columns {
		if !c.ragged {
			d.fixed += int(c.full.ByteSize())
		}
	}
	return d, nil
}

// Name implements [train.Dataset].
func (d *Dataset) Name() string { return d.options.Name }

// Iter implements [train.Dataset]: it yields the batches that Epochs, Steps or Pass say. An
// error is yielded once, last: those of the pipeline as they are, [ErrEnd] if there is no
// batch at all, and those of the backend. A batch without rows, which a rank may have at the
// end under loader.Exact, is left out.
func (d *Dataset) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		var mask []byte
		if d.options.Mask {
			mask = make([]byte, d.rows)
		}
		empty := true
		s := d.newStock()
		defer s.close()
		for b, err := range d.batches() {
			if err != nil {
				yield(train.Batch{}, err)
				return
			}
			empty = false
			if b.Len() == 0 {
				continue
			}
			out, err := d.take(b, mask, s)
			if err != nil {
				yield(train.Batch{}, err)
				return
			}
			b.Release() // the tensors are copies: workers may refill the memory during the step
			if !yield(out, nil) {
				return
			}
		}
		if empty {
			yield(train.Batch{}, ErrEnd)
		}
	}
}

// take makes the tensors of a batch. On an error it leaves none.
func (d *Dataset) take(b prefetch.Batch, mask []byte, s *stock) (train.Batch, error) {
	made, err := s.take(b.Len() == d.rows, len(d.columns)) // the consumer's, as the tensors are
	if err != nil {
		return train.Batch{}, err
	}
	for i := range d.columns {
		if err := d.fillIn(&made[i], b, &d.columns[i]); err != nil {
			set{tensors: made}.finalize()
			return train.Batch{}, err
		}
	}
	if mask != nil {
		t, err := d.valid(b, mask)
		if err != nil {
			set{tensors: made}.finalize()
			return train.Batch{}, err
		}
		made = append(made, t)
	}
	return train.Batch{Inputs: made[:d.inputs:d.inputs], Labels: made[d.inputs:]}, nil
}

// fillIn copies a field into a tensor of the stock, or makes one where there is none.
func (d *Dataset) fillIn(t **tensors.Tensor, b prefetch.Batch, c *column) (err error) {
	if *t == nil {
		*t, err = d.tensor(b, c)
		return err
	}
	return (*t).MutableBytes(func(to []byte) { copy(to, b.Field(c.name).Bytes) })
}

// tensor is the one copy of a field, in the backend's memory.
func (d *Dataset) tensor(b prefetch.Batch, c *column) (*tensors.Tensor, error) {
	f := b.Field(c.name)
	shape := c.of(f)
	if !d.fill || b.Len() == d.rows {
		return tensors.FromRaw(d.backend, d.options.Device, shape, f.Bytes)
	}
	t, err := tensors.FromShapeForBackend(d.backend, d.options.Device, filled(shape, d.rows)) // zeros
	if err != nil {
		return nil, err
	}
	if err := t.MutableBytes(func(to []byte) { copy(to, f.Bytes) }); err != nil {
		return nil, errors.Join(err, t.FinalizeAll())
	}
	return t, nil
}

// valid is the mask of a batch. buf has a byte for each row of a full one.
func (d *Dataset) valid(b prefetch.Batch, buf []byte) (*tensors.Tensor, error) {
	if !d.fill {
		buf = buf[:b.Len()]
	}
	n := b.Valid()
	for i := range buf[:n] {
		buf[i] = 1
	}
	clear(buf[n:])
	return tensors.FromRaw(d.backend, d.options.Device, shapes.Make(dtypes.Bool, len(buf)), buf)
}
