package gorgonia_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/stretchr/testify/require"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gorgonia"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// In a body a node's value is the batch's memory itself, in the node's shape; a short batch
// is the Feed's, with zeros behind it. No step writes to the batch.
func TestNodesHaveTheBatch(t *testing.T) {
	r := newRegression(t, 4)
	pf := open(t, points(10), 4, loader.Options{}, prefetch.Options{})
	batches := 0
	for b, err := range r.feed(t, pf).Let(pf.Batches(t.Context())) {
		require.NoError(t, err)
		f := b.Field("x")
		want := append([]float64{}, dtype.As[float64](f.Bytes)...)
		require.Equal(t, tensor.Shape{4, 2, 3}, r.x.Value().Shape())
		got, mask := r.x.Value().Data().([]float64), r.mask.Value().Data().([]float64)
		at := uintptr(unsafe.Pointer(&f.Bytes[0]))
		if b.Len() == 4 {
			require.Equal(t, at, r.x.Value().Uintptr())
			require.Equal(t, []float64{1, 1, 1, 1}, mask)
		} else {
			require.NotEqual(t, at, r.x.Value().Uintptr())
			require.Equal(t, []float64{1, 1, 0, 0}, mask)
			want = append(want, make([]float64, 12)...)
		}
		require.Equal(t, want, got)
		before, err := b.Digest()
		require.NoError(t, err)
		r.step(t)
		after, err := b.Digest()
		require.NoError(t, err)
		require.Equal(t, before, after)
		batches++
	}
	require.Equal(t, 3, batches)
}

// A field is seen in any shape of equally many elements.
func TestANodeHasAShapeOfItsOwn(t *testing.T) {
	g := G.NewGraph()
	x := G.NewMatrix(g, tensor.Float64, G.WithShape(5, 6), G.WithName("x"))
	y := G.NewMatrix(g, tensor.Float64, G.WithShape(5, 1), G.WithName("y"))
	sum := G.Must(G.Add(G.Must(G.Sum(x)), G.Must(G.Sum(y))))
	vm := G.NewTapeMachine(g)
	defer vm.Close()
	pf := open(t, points(5), 5, loader.Options{}, prefetch.Options{})
	feed, err := gorgonia.New(vm, pf, map[string]*G.Node{"x": x, "y": y}, nil)
	require.NoError(t, err)
	for b, err := range feed.Let(pf.Batches(t.Context())) {
		require.NoError(t, err)
		require.NoError(t, vm.RunAll())
		want := 0.0
		for _, v := range append(dtype.As[float64](b.Field("x").Bytes), dtype.As[float64](b.Field("y").Bytes)...) {
			want += v
		}
		require.InDelta(t, want, sum.Value().Data(), 1e-9)
	}
}

// However a range ends, nothing in the graph or the machine lies in a batch: it runs and can
// be read when the pipeline's memory is gone.
func TestNothingRefersToABatch(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, batches iter.Seq2[prefetch.Batch, error], step func()){
		"end": func(t *testing.T, batches iter.Seq2[prefetch.Batch, error], step func()) {
			for _, err := range batches {
				require.NoError(t, err)
				step()
			}
		},
		"break": func(t *testing.T, batches iter.Seq2[prefetch.Batch, error], step func()) {
			for _, err := range batches {
				require.NoError(t, err)
				step()
				break
			}
		},
		"panic": func(t *testing.T, batches iter.Seq2[prefetch.Batch, error], step func()) {
			require.PanicsWithValue(t, "mine", func() {
				for range batches {
					step()
					panic("mine")
				}
			})
		},
		"stop": func(t *testing.T, batches iter.Seq2[prefetch.Batch, error], step func()) {
			next, stop := iter.Pull2(batches)
			_, err, ok := next()
			require.True(t, ok)
			require.NoError(t, err)
			step()
			stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegression(t, 4)
			pf := open(t, points(10), 4, loader.Options{}, prefetch.Options{})
			var lent [][2]uintptr
			var cost float64
			leave(t, func(yield func(prefetch.Batch, error) bool) {
				for b, err := range r.feed(t, pf).Let(pf.Batches(t.Context())) {
					for _, f := range b.Fields() {
						at := uintptr(unsafe.Pointer(&f.Bytes[0]))
						lent = append(lent, [2]uintptr{at, at + uintptr(len(f.Bytes))})
					}
					if !yield(b, err) {
						return
					}
				}
			}, func() { cost = r.step(t) })
			require.NoError(t, pf.Close())
			require.NotEmpty(t, lent)
			for _, n := range r.graph.AllNodes() {
				if v := n.Value(); v != nil {
					for _, l := range lent {
						require.False(t, v.Uintptr() < l[1] && l[0] < v.Uintptr()+v.MemSize(), "%v", n)
					}
				}
			}
			require.Equal(t, cost, r.cost.Value().Data(), "the last cost stays")
			require.NoError(t, r.vm.RunAll())
			require.Len(t, r.view.Value().Data(), 24)
			require.False(t, r.cost.Value().Data().(float64) < 0)
		})
	}
}

func TestShortBatchesNeedAMask(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Pad, loader.Drop} {
		r := newRegression(t, 4)
		pf := open(t, points(6), 4, loader.Options{Last: last}, prefetch.Options{})
		feed, err := gorgonia.New(r.vm, pf, map[string]*G.Node{"x": r.x}, nil)
		require.NoError(t, err)
		var errs []error
		n := 0
		for _, err := range feed.Let(pf.Batches(t.Context())) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			n++
		}
		require.Equal(t, 1, n)
		if last == loader.Drop {
			require.Empty(t, errs)
			continue
		}
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], gorgonia.ErrShort)
	}
}

// The second rank has nothing of the last global batch: that one is left out.
func TestABatchWithoutRows(t *testing.T) {
	r := newRegression(t, 4)
	pf := open(t, points(9), 4, loader.Options{Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}}, prefetch.Options{})
	var lengths []int
	for b, err := range r.feed(t, pf).Let(pf.Batches(t.Context())) {
		require.NoError(t, err)
		lengths = append(lengths, b.Len())
	}
	require.Equal(t, []int{4}, lengths)
}

// Behind a short batch there are zeros, and not the rows of a longer one before it.
func TestShortBatchesOfSeveralLengths(t *testing.T) {
	r := newRegression(t, 4)
	pf := open(t, points(7), 4, loader.Options{}, prefetch.Options{})
	feed := r.feed(t, pf)
	for first, tail := range []int{3, 2, 1} {
		require.NoError(t, pf.Seek(first, int64(first)))
		for b, err := range feed.Let(pf.Batches(t.Context())) {
			require.NoError(t, err)
			if b.Len() == 4 {
				continue
			}
			require.Equal(t, tail, b.Len())
			require.Equal(t, make([]float64, 6*(4-tail)), r.x.Value().Data().([]float64)[6*tail:])
		}
	}
}

// Padding of the loader's counts as little as rows that are missing.
func TestMaskedCost(t *testing.T) {
	var costs [2]float64
	for i, last := range []loader.LastPolicy{loader.Keep, loader.Pad} {
		r := newRegression(t, 4)
		pf := open(t, points(6), 4, loader.Options{Last: last}, prefetch.Options{})
		for _, err := range r.feed(t, pf).Let(pf.Batches(t.Context())) {
			require.NoError(t, err)
			costs[i] = r.step(t)
		}
	}
	require.NotZero(t, costs[0])
	require.Equal(t, costs[0], costs[1])
}

func TestMistakesAreReportedTogether(t *testing.T) {
	fields := []loader.Field{
		{Name: "x", DType: dtype.Float32, Shape: []int{3}},
		{Name: "half", DType: dtype.Float16},
		{Name: "words", DType: dtype.Int32, Shape: []int{9}, Ragged: &loader.Ragged{Mask: "mask", Length: "n"}},
		{Name: "none", DType: dtype.Float32, Shape: []int{0}},
	}
	ds := loader.FromFunc(4, fields, func(context.Context, int, *loader.Row) error { return errors.New("unread") })
	pf := open(t, ds, 2, loader.Options{}, prefetch.Options{})
	g := G.NewGraph()
	node := func(g *G.ExprGraph, of tensor.Dtype, shape ...int) *G.Node {
		return G.NewTensor(g, of, len(shape), G.WithShape(shape...), G.WithName("n"))
	}
	x := node(g, tensor.Float32, 2, 3)
	vm := G.NewLispMachine(g)
	defer vm.Close()
	for _, c := range []struct {
		field string
		node  *G.Node
		want  error
	}{
		{"label", x, gorgonia.ErrNoField},
		{"x", nil, gorgonia.ErrNotInput},
		{"x", G.Must(G.Square(x)), gorgonia.ErrNotInput},
		{"x", node(g, tensor.Float64, 2, 3), gorgonia.ErrType},
		{"half", node(g, tensor.Float32, 2), gorgonia.ErrType},
		{"x", node(g, tensor.Float32, 2, 4), gorgonia.ErrShape},
		{"x", node(g, tensor.Float32, 3, 2), gorgonia.ErrShape},
		{"none", node(g, tensor.Float32, 2, 0), gorgonia.ErrShape},
		{"words", node(g, tensor.Int32, 2, 9), gorgonia.ErrRagged},
		{"mask", node(g, tensor.Uint8, 2, 9), gorgonia.ErrRagged},
		{"n", node(g, tensor.Int32, 2), nil},
	} {
		_, err := gorgonia.New(vm, pf, map[string]*G.Node{c.field: c.node}, nil)
		require.ErrorIs(t, err, c.want, "%s", c.field)
		if c.want != nil {
			var where *gorgonia.NodeError
			require.ErrorAs(t, err, &where)
			require.Equal(t, c.field, where.Field)
		}
	}
	_, err := gorgonia.New(vm, pf, map[string]*G.Node{"a": x, "b": x}, node(g, tensor.Int32, 2))
	require.ErrorContains(t, err, `field "a": it is not in the batches`)
	require.ErrorContains(t, err, `field "b": it is not in the batches`)
	require.ErrorContains(t, err, "the mask: its node has another type: int32")
	_, err = gorgonia.New(vm, pf, nil, node(g, tensor.Float32, 3))
	require.ErrorIs(t, err, gorgonia.ErrNoInputs)
	require.ErrorIs(t, err, gorgonia.ErrShape)
	_, err = gorgonia.New(vm, pf, map[string]*G.Node{"x": x}, node(G.NewGraph(), tensor.Float32, 2))
	require.ErrorIs(t, err, gorgonia.ErrOtherGraph)
	_, err = gorgonia.New(nil, pf, map[string]*G.Node{"x": x}, nil)
	require.ErrorContains(t, err, "no machine")
}

func TestBatchesInDeviceMemoryAreRefused(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	stream, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(points(6), 2, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.New(stream, ld, prefetch.Options{})
	require.NoError(t, err)
	r := newRegression(t, 2)
	_, err = gorgonia.New(r.vm, pf, map[string]*G.Node{"x": r.x}, nil)
	require.ErrorIs(t, err, gorgonia.ErrDeviceMemory)
	require.NoError(t, pf.Close())
	require.NoError(t, stream.Close())
	require.NoError(t, dev.Close())
}

// What goes wrong in a dataset comes once, as itself.
func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	data := loader.FromFunc(4, points(1).Fields(), func(ctx context.Context, i int, row *loader.Row) error {
		if i == 2 {
			return broken
		}
		return points(4).Read(ctx, i, row)
	})
	r := newRegression(t, 2)
	pf := open(t, data, 2, loader.Options{}, prefetch.Options{})
	var errs []error
	n := 0
	for _, err := range r.feed(t, pf).Let(pf.Batches(t.Context())) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	require.Equal(t, 1, n)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], broken)
}

func TestPullLeftHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegression(t, 2)
		pf := open(t, points(10), 2, loader.Options{}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
		feed := r.feed(t, pf)
		for i := range 1000 {
			next, stop := iter.Pull2(feed.Let(pf.All(t.Context())))
			for j := range 2 {
				b, err, ok := next()
				require.True(t, ok)
				require.NoError(t, err)
				require.EqualValues(t, (2*i+j)%5, b.Position().Batch)
			}
			stop()
		}
	})
}

// Once every slot has been seen, a batch costs what Gorgonia's own functions allocate.
func TestAllocations(t *testing.T) {
	ld, err := loader.New(points(64), 8, loader.Options{})
	require.NoError(t, err)
	ld, err = loader.Replay(t.Context(), ld, 8)
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	defer pf.Close()
	r := newRegression(t, 8)
	feed := r.feed(t, pf)
	own := r.x.Value()
	theirs := testing.AllocsPerRun(100, func() {
		r.vm.Reset()
		for range 4 { // two fields, each lent and taken back
			if err := G.Let(r.x, own); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range r.graph.AllNodes() {
			_ = n.Value()
		}
	})
	next, stop := iter.Pull2(feed.Let(pf.All(t.Context())))
	defer stop()
	all := testing.AllocsPerRun(500, func() {
		if _, err, _ := next(); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, all, theirs)
}
