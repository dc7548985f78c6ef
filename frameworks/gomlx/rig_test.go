package gomlx_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// stamped are n samples, of which x and y are told by the index.
func stamped(n int) loader.Dataset {
	fields := []loader.Field{
		{Name: "x", DType: dtype.Float32, Shape: []int{3}},
		{Name: "y", DType: dtype.Int32},
	}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		if err := loader.Write(row, "x", float32(i), float32(i+1), float32(i+2)); err != nil {
			return err
		}
		return loader.Write(row, "y", int32(i%2))
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

// kind is one of the functions that make a Dataset.
type kind func(context.Context, compute.Backend, *prefetch.Prefetcher, []string, []string, gomlx.Options) (*gomlx.Dataset, error)

func adapt(t testing.TB, make kind, pf *prefetch.Prefetcher, o gomlx.Options) *gomlx.Dataset {
	t.Helper()
	ds, err := make(t.Context(), gobackend.GetBackend(), pf, []string{"x"}, []string{"y"}, o)
	require.NoError(t, err)
	return ds
}

// first are the first elements of the rows of x.
func first(t testing.TB, b train.Batch) []float32 {
	t.Helper()
	var rows []float32
	require.NoError(t, tensors.ConstFlatData(b.Inputs[0], func(flat []float32) {
		for i := 0; i < len(flat); i += 3 {
			rows = append(rows, flat[i])
		}
	}))
	return rows
}

// read ranges over a Dataset once, up to a number of batches, and returns the rows of each.
func read(t testing.TB, ds train.Dataset, most int) (batches [][]float32) {
	t.Helper()
	for b, err := range ds.Iter() {
		require.NoError(t, err)
		batches = append(batches, first(t, b))
		require.NoError(t, b.Finalize())
		if len(batches) == most {
			break
		}
	}
	return batches
}

// A bank is a backend that counts what tensors are made of, and can run out of memory.
type bank struct {
	compute.Backend
	buffers, bytes, live, flat atomic.Int64
	failAt                     int64 // the buffer that fails, counted from 1
}

var errBank = fmt.Errorf("no memory left")

func newBank() *bank { return &bank{Backend: gobackend.GetBackend()} }

func (k *bank) NewSharedBuffer(n compute.DeviceNum, s shapes.Shape) (compute.Buffer, any, error) {
	if k.buffers.Add(1) == k.failAt {
		return nil, nil, errBank
	}
	b, flat, err := k.Backend.NewSharedBuffer(n, s)
	k.bytes.Add(s.ByteSize())
	k.live.Add(1)
	return &deposit{b, k}, flat, err
}

func (k *bank) BufferFromFlatData(n compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	k.flat.Add(1)
	return k.Backend.BufferFromFlatData(n, flat, s)
}

type deposit struct {
	compute.Buffer
	bank *bank
}

func (d *deposit) Finalize() error {
	d.bank.live.Add(-1)
	return d.Buffer.Finalize()
}

// perceptron is a model of one hidden layer over the first input, flat and scaled.
func perceptron(hidden, classes int, scale float64) func(*model.Scope, []*graph.Node) []*graph.Node {
	return func(scope *model.Scope, inputs []*graph.Node) []*graph.Node {
		x := inputs[0]
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		x = graph.MulScalar(graph.ConvertDType(x, dtypes.Float32), scale)
		x = activation.Relu(layers.DenseWithBias(scope.In("hidden"), x, hidden))
		return []*graph.Node{layers.DenseWithBias(scope.In("readout"), x, classes)}
	}
}

func newTrainer(hidden, classes int, scale float64) *train.Trainer {
	store := model.NewStore()
	store.SetParam(model.ParamInitialSeed, int64(42))
	return train.NewTrainer(gobackend.GetBackend(), store, perceptron(hidden, classes, scale),
		loss.SparseCategoricalCrossEntropyLogits,
		optimizer.Adam().LearningRate(0.003).Done(), nil,
		[]metric.Interface{metric.NewSparseCategoricalAccuracy("Accuracy", "acc")})
}

func scalar(t testing.TB, v *tensors.Tensor) float64 {
	t.Helper()
	return shapes.ConvertTo[float64](v.Value())
}
