package gomlx_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func Example() {
	ctx := context.Background()
	pf := pipeline(loader.Options{Shuffle: true, Seed: 1})
	defer pf.Close()
	evaluation := pipeline(loader.Options{})
	defer evaluation.Close()

	backend := gobackend.GetBackend()
	in, out := []string{"point"}, []string{"side"}
	training, err := gomlx.Epochs(ctx, backend, pf, in, out, gomlx.Options{Mask: true})
	check(err)
	test, err := gomlx.Pass(ctx, backend, evaluation, in, out, gomlx.Options{Name: "test", Mask: true})
	check(err)

	trainer := train.NewTrainer(backend, model.NewStore(), classifier,
		loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.05).Done(),
		nil, []metric.Interface{metric.NewSparseCategoricalAccuracy("Accuracy", "acc")})
	_, err = train.NewLoop(trainer).RunEpochs(training, 20)
	check(err)
	metrics, err := trainer.Eval(test)
	check(err)
	fmt.Println("epoch", pf.Epoch(), "accuracy above 95%:", shapes.ConvertTo[float64](metrics[1].Value()) > 0.95)
	// Output: epoch 20 accuracy above 95%: true
}

// For Loop.RunSteps, whose steps go on over the ends of epochs.
func ExampleSteps() {
	pf := pipeline(loader.Options{Shuffle: true, Seed: 1})
	defer pf.Close()
	ds, err := gomlx.Steps(context.Background(), gobackend.GetBackend(), pf, []string{"point"}, []string{"side"}, gomlx.Options{Mask: true})
	check(err)
	trainer := train.NewTrainer(gobackend.GetBackend(), model.NewStore(), classifier,
		loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), nil, nil)
	loop := train.NewLoop(trainer)
	_, err = loop.RunSteps(ds, 40) // epochs of 32 steps
	check(err)
	state := pf.State() // saved beside the model's checkpoint, it is where Restore goes on
	fmt.Println("epoch", state.Epoch, "position", state.Position)
	// Output: epoch 1 position 256
}

// pipeline gives 1,000 points of the plane, and on which side of a line they are.
func pipeline(o loader.Options) *prefetch.Prefetcher {
	fields := []loader.Field{
		{Name: "point", DType: dtype.Float32, Shape: []int{2}},
		{Name: "side", DType: dtype.Int32},
	}
	points := loader.FromFunc(1000, fields, func(_ context.Context, i int, row *loader.Row) error {
		x, y, side := float32(i%40)/20-1, float32(i/40)/12.5-1, int32(0)
		if x+y > 0 {
			side = 1
		}
		if err := loader.Write(row, "point", x, y); err != nil {
			return err
		}
		return loader.Write(row, "side", side)
	})
	ld, err := loader.New(points, 32, o)
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	return pf
}

func classifier(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
	return []*graph.Node{layers.DenseWithBias(scope, inputs[0], 2)}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
