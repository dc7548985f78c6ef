package gorgonia_test

import (
	"context"
	"fmt"
	"log"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gorgonia"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

func Example() {
	const rows = 32
	fields := []loader.Field{
		{Name: "x", DType: dtype.Float64, Shape: []int{2}},
		{Name: "y", DType: dtype.Float64},
	}
	plane := loader.FromFunc(1000, fields, func(_ context.Context, i int, row *loader.Row) error {
		a, b := float64(i%40)/40, float64(i/40)/25
		if err := loader.Write(row, "x", a, b); err != nil {
			return err
		}
		return loader.Write(row, "y", 3*a-2*b)
	})
	ld, err := loader.New(plane, rows, loader.Options{Shuffle: true, Seed: 1, Epochs: 20})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	defer pf.Close()

	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithShape(rows, 2), G.WithName("x"))
	y := G.NewVector(g, tensor.Float64, G.WithShape(rows), G.WithName("y"))
	mask := G.NewVector(g, tensor.Float64, G.WithShape(rows), G.WithName("mask"))
	w := G.NewVector(g, tensor.Float64, G.WithShape(2), G.WithName("w"), G.WithInit(G.Zeroes()))
	off := G.Must(G.Square(G.Must(G.Sub(G.Must(G.Mul(x, w)), y))))
	// The mean over the rows that are samples: the last batch has 8 of them.
	cost := G.Must(G.Div(G.Must(G.Sum(G.Must(G.HadamardProd(off, mask)))), G.Must(G.Sum(mask))))
	_, err = G.Grad(cost, w)
	check(err)
	vm := G.NewTapeMachine(g, G.BindDualValues(w))
	defer vm.Close()
	solver := G.NewAdamSolver(G.WithLearnRate(0.05))

	feed, err := gorgonia.New(vm, pf, map[string]*G.Node{"x": x, "y": y}, mask)
	check(err)
	for _, err := range feed.Let(pf.All(context.Background())) {
		check(err)
		check(vm.RunAll())
		check(solver.Step([]G.ValueGrad{w}))
	}
	fmt.Printf("%.2f\n", w.Value())
	// Output: [ 3.00  -2.00]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
