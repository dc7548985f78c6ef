package gorgonia_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/examples/train/mnist"
	"github.com/leat-go/leat/frameworks/gorgonia"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/prefetch"
)

// The costs of a training are the same whatever the number of workers and slots.
func TestCostsDependOnNothingElse(t *testing.T) {
	costs := func(workers, slots int) (all []float64) {
		r := newRegression(t, 16)
		pf := open(t, points(200), 16, loader.Options{Shuffle: true, Seed: 5, Epochs: 3, Workers: workers},
			prefetch.Options{Memory: prefetch.Memory{HostSlots: slots}})
		for _, err := range r.feed(t, pf).Let(pf.All(t.Context())) {
			require.NoError(t, err)
			all = append(all, r.step(t))
		}
		return all
	}
	want := costs(1, 1)
	require.Len(t, want, 3*13)
	require.Less(t, want[len(want)-1], want[0]/100)
	for _, workers := range []int{1, 2, 7} {
		for _, slots := range []int{2, 5} {
			require.Equal(t, want, costs(workers, slots), "%d workers, %d slots", workers, slots)
		}
	}
}

// A perceptron learns MNIST: 90% of the test set after one epoch, of which the last batch is
// short.
func TestTrainingOnMNIST(t *testing.T) {
	training, testing, err := mnist.Open(t.Context(), "") // from the module cache
	require.NoError(t, err)
	const rows = 128
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float32, G.WithShape(rows, 784), G.WithName("x"))
	y := G.NewMatrix(g, tensor.Float32, G.WithShape(rows, 10), G.WithName("y"))
	mask := G.NewVector(g, tensor.Float32, G.WithShape(rows), G.WithName("mask"))
	weights := func(name string, n, m int) *G.Node {
		return G.NewMatrix(g, tensor.Float32, G.WithShape(n, m), G.WithName(name), G.WithValue(spread(n, m)))
	}
	w1, w2 := weights("w1", 784, 32), weights("w2", 32, 10)
	hidden := G.Must(G.Rectify(G.Must(G.Mul(x, w1))))
	out := G.Must(G.SoftMax(G.Must(G.Mul(hidden, w2))))
	entropy := G.Must(G.Sum(G.Must(G.HadamardProd(G.Must(G.Log(out)), y)), 1))
	cost := G.Must(G.Neg(G.Must(G.Div(G.Must(G.Sum(G.Must(G.HadamardProd(entropy, mask)))), G.Must(G.Sum(mask))))))
	_, err = G.Grad(cost, w1, w2)
	require.NoError(t, err)
	vm := G.NewTapeMachine(g, G.BindDualValues(w1, w2))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.003))

	nodes := map[string]*G.Node{"image": x, "digit": y}
	pf := open(t, digits(t, training), rows, loader.Options{Shuffle: true, Seed: 1}, prefetch.Options{})
	feed, err := gorgonia.New(vm, pf, nodes, mask)
	require.NoError(t, err)
	for _, err := range feed.Let(pf.Batches(t.Context())) {
		require.NoError(t, err)
		require.NoError(t, vm.RunAll())
		require.NoError(t, solver.Step([]G.ValueGrad{w1, w2}))
	}

	evaluation := open(t, digits(t, testing), rows, loader.Options{}, prefetch.Options{})
	feed, err = gorgonia.New(vm, evaluation, nodes, mask)
	require.NoError(t, err)
	right, all := 0, 0
	for b, err := range feed.Let(evaluation.Pass(t.Context())) {
		require.NoError(t, err)
		require.NoError(t, vm.RunAll())
		for i := range b.Len() {
			if largest(out.Value().Data().([]float32)[10*i:][:10]) == largest(dtype.As[float32](b.Field("digit").Bytes)[10*i:][:10]) {
				right++
			}
			all++
		}
	}
	require.Equal(t, 10_000, all)
	t.Logf("%d of %d after one epoch", right, all)
	require.Greater(t, right, 9000)
}

// digits makes numbers from 0 to 1 of MNIST's images, and a row of 10 of each label.
func digits(t *testing.T, ds loader.Dataset) loader.Dataset {
	fields := []loader.Field{
		{Name: "image", DType: dtype.Float32, Shape: []int{28, 28}},
		{Name: "digit", DType: dtype.Float32, Shape: []int{10}},
	}
	mapped, err := compose.Map(ds, fields, func(_ context.Context, in, out *loader.Row) error {
		image := loader.Column[float32](out, "image")
		for i, p := range loader.Value[uint8](in, "image") {
			image[i] = float32(p) / 255
		}
		digit := loader.Column[float32](out, "digit")
		clear(digit)
		digit[loader.Value[uint8](in, "label")[0]] = 1
		return nil
	})
	require.NoError(t, err)
	return mapped
}

// spread are small numbers that are the same in each run.
func spread(n, m int) *tensor.Dense {
	w, state := make([]float32, n*m), uint32(1)
	for i := range w {
		state = state*1664525 + 1013904223
		w[i] = (float32(state>>8)/(1<<23) - 1) * 0.08
	}
	return tensor.New(tensor.WithShape(n, m), tensor.WithBacking(w))
}

func largest(row []float32) (at int) {
	for i, x := range row {
		if x > row[at] {
			at = i
		}
	}
	return at
}
