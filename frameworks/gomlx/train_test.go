package gomlx_test

import (
	"iter"
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// A perceptron learns MNIST by GoMLX's own loop, with the batches of a pipeline: 94% of the
// test set after one epoch, and one compiled graph for training.
func TestTrainingOnMNIST(t *testing.T) {
	training, testing, err := mnist.Open(t.Context(), "") // from the module cache
	require.NoError(t, err)
	backend, in, out := gobackend.GetBackend(), []string{"image"}, []string{"label"}
	pf := open(t, training, 128, loader.Options{Shuffle: true, Seed: 1}, prefetch.Options{})
	ds, err := gomlx.Epochs(t.Context(), backend, pf, in, out, gomlx.Options{Mask: true})
	require.NoError(t, err)
	evaluation := open(t, testing, 250, loader.Options{}, prefetch.Options{})
	test, err := gomlx.Pass(t.Context(), backend, evaluation, in, out, gomlx.Options{Name: "test", Mask: true})
	require.NoError(t, err)

	trainer := newTrainer(64, 10, 1.0/255).WithMaxExecutors(1)
	loop := train.NewLoop(trainer)
	_, err = loop.RunEpochs(ds, 1)
	require.NoError(t, err)
	require.Equal(t, 469, loop.LoopStep)
	metrics, err := trainer.Eval(test)
	require.NoError(t, err)
	accuracy := scalar(t, metrics[1])
	t.Logf("%.2f%% after one epoch, %v a step", 100*accuracy, loop.MedianTrainStepDuration())
	require.Greater(t, accuracy, 0.94)
}

// The losses of a training are the same whatever the number of workers and slots.
func TestLossesDependOnNothingElse(t *testing.T) {
	losses := func(workers, slots int) (all []float64) {
		pf := open(t, stamped(200), 16, loader.Options{Shuffle: true, Seed: 5, Workers: workers},
			prefetch.Options{Memory: prefetch.Memory{HostSlots: slots}})
		loop := train.NewLoop(newTrainer(8, 2, 0.01))
		loop.OnStep("losses", 0, func(_ *train.Loop, metrics []*tensors.Tensor) error {
			all = append(all, scalar(t, metrics[0]))
			return nil
		})
		_, err := loop.RunEpochs(adapt(t, gomlx.Epochs, pf, gomlx.Options{Mask: true}), 3)
		require.NoError(t, err)
		return all
	}
	want := losses(1, 1)
	require.Len(t, want, 3*13)
	require.Less(t, want[len(want)-1], want[0])
	for _, workers := range []int{1, 2, 7} {
		for _, slots := range []int{2, 5} {
			require.Equal(t, want, losses(workers, slots), "%d workers, %d slots", workers, slots)
		}
	}
}

// An evaluation counts every sample once, whatever the batch size, with a mask and without.
func TestEvaluationIsExact(t *testing.T) {
	var want []float64
	for _, mask := range []bool{false, true} {
		for _, batch := range []int{100, 64, 7, 1} {
			trainer := newTrainer(8, 2, 0.01)
			pf := open(t, stamped(100), batch, loader.Options{}, prefetch.Options{})
			ds := adapt(t, gomlx.Pass, pf, gomlx.Options{Mask: mask})
			for range 2 {
				metrics, err := trainer.Eval(ds)
				require.NoError(t, err)
				got := []float64{scalar(t, metrics[0]), scalar(t, metrics[1])}
				if want == nil {
					want = got
				}
				require.InDeltaSlice(t, want, got, 1e-5, "batch %d, mask %v", batch, mask)
			}
		}
	}
}

// GoMLX's loop gives tensors back after each step, while a hook keeps others: 10,000 steps
// with evaluations in between, epochs of which the last batch is 5 of 8, and a loop that is
// left in the third batch. Nothing is freed twice, kept or changed later.
func TestALongTraining(t *testing.T) {
	steps := 10_000
	if race {
		steps = 500
	}
	training := open(t, stamped(21), 8, loader.Options{Shuffle: true, Seed: 2}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
	evaluation := open(t, stamped(13), 8, loader.Options{}, prefetch.Options{})
	ds := &keeping{Dataset: adapt(t, gomlx.Steps, training, gomlx.Options{Mask: true})}
	test := adapt(t, gomlx.Pass, evaluation, gomlx.Options{Mask: true})
	trainer := newTrainer(2, 2, 0.01).WithMaxExecutors(2)
	loop := train.NewLoop(trainer)
	for _, part := range []int{steps / 2, 3, steps - steps/2 - 3} {
		_, err := loop.RunSteps(ds, part)
		require.NoError(t, err)
		_, err = trainer.Eval(test)
		require.NoError(t, err)
	}
	require.Equal(t, steps, loop.LoopStep)
	require.Len(t, ds.kept, steps/10)
	for i, b := range ds.kept {
		require.Equal(t, ds.rows[i], first(t, b))
		require.NoError(t, b.Finalize())
		require.NoError(t, b.Finalize(), "again")
	}
	require.EqualValues(t, steps%3, training.State().Position/8)
	require.NoError(t, training.Close()) // a lease that was left would be its error
	require.NoError(t, evaluation.Close())
}

// keeping keeps a copy of every tenth batch, and what was in it.
type keeping struct {
	train.Dataset
	n    int
	kept []train.Batch
	rows [][]float32
}

func (k *keeping) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for b, err := range k.Dataset.Iter() {
			if k.n++; err == nil && k.n%10 == 0 {
				clone, cloneErr := b.Clone()
				if cloneErr != nil {
					yield(train.Batch{}, cloneErr)
					return
				}
				var rows []float32
				_ = tensors.ConstFlatData(b.Inputs[0], func(flat []float32) {
					for i := 0; i < len(flat); i += 3 {
						rows = append(rows, flat[i])
					}
				})
				k.kept, k.rows = append(k.kept, clone), append(k.rows, rows)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}
