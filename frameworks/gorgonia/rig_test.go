package gorgonia_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gorgonia"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// points are n samples of which x is told by the index, and y is x's sum.
func points(n int) loader.Dataset {
	fields := []loader.Field{
		{Name: "x", DType: dtype.Float64, Shape: []int{2, 3}},
		{Name: "y", DType: dtype.Float64},
	}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		x, sum := loader.Column[float64](row, "x"), 0.0
		for j := range x {
			x[j] = float64((i*7+j*3)%11) / 11
			sum += x[j]
		}
		return loader.Write(row, "y", sum)
	})
}

func open(t testing.TB, ds loader.Dataset, batch int, lo loader.Options, po prefetch.Options) *prefetch.Prefetcher {
	t.Helper()
	ld, err := loader.New(ds, batch, lo)
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, po)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pf.Close()) })
	return pf
}

// A regression is y = x·w, with x through a Reshape, whose value lies in x's memory. Its cost
// counts the rows of the mask.
type regression struct {
	graph                     *G.ExprGraph
	x, y, mask, view, w, cost *G.Node
	vm                        G.VM
	solver                    G.Solver
}

func newRegression(t testing.TB, rows int) *regression {
	t.Helper()
	g := G.NewGraph()
	r := &regression{graph: g, solver: G.NewVanillaSolver(G.WithLearnRate(0.1))}
	r.x = G.NewTensor(g, tensor.Float64, 3, G.WithShape(rows, 2, 3), G.WithName("x"))
	r.y = G.NewVector(g, tensor.Float64, G.WithShape(rows), G.WithName("y"))
	r.mask = G.NewVector(g, tensor.Float64, G.WithShape(rows), G.WithName("mask"))
	r.w = G.NewVector(g, tensor.Float64, G.WithShape(6), G.WithName("w"), G.WithInit(G.Zeroes()))
	r.view = G.Must(G.Reshape(r.x, tensor.Shape{rows, 6}))
	off := G.Must(G.Sub(G.Must(G.Mul(r.view, r.w)), r.y))
	loss := G.Must(G.Sum(G.Must(G.HadamardProd(G.Must(G.Square(off)), r.mask))))
	r.cost = G.Must(G.Div(loss, G.Must(G.Sum(r.mask))))
	_, err := G.Grad(r.cost, r.w)
	require.NoError(t, err)
	r.vm = G.NewTapeMachine(g, G.BindDualValues(r.w))
	t.Cleanup(func() { require.NoError(t, r.vm.Close()) })
	return r
}

func (r *regression) feed(t testing.TB, pf *prefetch.Prefetcher) *gorgonia.Feed {
	t.Helper()
	f, err := gorgonia.New(r.vm, pf, map[string]*G.Node{"x": r.x, "y": r.y}, r.mask)
	require.NoError(t, err)
	return f
}

// step is one of training, and returns the cost.
func (r *regression) step(t testing.TB) float64 {
	t.Helper()
	require.NoError(t, r.vm.RunAll())
	require.NoError(t, r.solver.Step([]G.ValueGrad{r.w}))
	return r.cost.Value().Data().(float64)
}
