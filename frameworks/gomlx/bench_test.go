package gomlx_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const (
	benchSamples = 16_384
	benchBatch   = 256
	benchPixels  = 28 * 28
)

// A job is what is done for each sample: the same code for all loaders.
type job struct {
	dtype  dtypes.DType
	sample func(to, from []byte)
}

var jobs = map[string]job{
	// A sample is copied from a random place of an array in memory.
	"copy": {dtypes.Uint8, func(to, from []byte) { copy(to, from) }},
	// It is made numbers from 0 to 1.
	"scale": {dtypes.Float32, func(to, from []byte) {
		numbers := dtype.As[float32](to)
		for i, x := range from {
			numbers[i] = float32(x) * (1.0 / 255)
		}
	}},
	// It is turned by a small angle and blended from four neighbours, as augmentation does.
	"turn": {dtypes.Float32, func(to, from []byte) {
		numbers := dtype.As[float32](to)
		cos, sin := float32(0.995), float32(from[400])/2550
		for y := range 28 {
			for x := range 28 {
				u := cos*float32(x-14) - sin*float32(y-14) + 14
				v := sin*float32(x-14) + cos*float32(y-14) + 14
				i, j := min(max(int(u), 0), 26), min(max(int(v), 0), 26)
				p, q := u-float32(i), v-float32(j)
				at := from[28*j+i:]
				top := float32(at[0])*(1-p) + float32(at[1])*p
				low := float32(at[28])*(1-p) + float32(at[29])*p
				numbers[28*y+x] = (top*(1-q) + low*q) * (1.0 / 255)
			}
		}
	}},
}

func (j job) bytes() int { return benchPixels * j.dtype.Size() }

// samples makes pictures of which the bytes don't matter, and labels.
func samples() (pixels, labels []byte) {
	pixels, labels = make([]byte, benchSamples*benchPixels), make([]byte, benchSamples)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range pixels {
		pixels[i] = byte(r.Uint32())
	}
	for i := range labels {
		labels[i] = byte(i % 10)
	}
	return pixels, labels
}

// whole is a dataset as a user of GoMLX writes it who wants it fast: one loop that fills
// whole batches in place, in a random order.
type whole struct {
	job
	pixels, labels []byte
}

func (whole) Name() string { return "whole" }

func (w whole) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		order := rand.Perm(benchSamples)
		for at := 0; at < len(order); at += benchBatch {
			if !yield(w.fill(order[at:at+benchBatch]), nil) {
				return
			}
		}
	}
}

func (w whole) fill(indices []int) train.Batch {
	x := must(tensors.FromShapeForBackend(gobackend.GetBackend(), 0, shapes.Make(w.dtype, len(indices), 28, 28)))
	y := must(tensors.FromShapeForBackend(gobackend.GetBackend(), 0, shapes.Make(dtypes.Uint8, len(indices), 1)))
	_ = x.MutableBytes(func(to []byte) {
		for k, i := range indices {
			w.sample(to[k*w.bytes():][:w.bytes()], w.pixels[i*benchPixels:][:benchPixels])
		}
	})
	_ = y.MutableBytes(func(to []byte) {
		for k, i := range indices {
			to[k] = w.labels[i]
		}
	})
	return train.Batch{Inputs: []*tensors.Tensor{x}, Labels: []*tensors.Tensor{y}}
}

// numbers yields the numbers of each batch's samples, for loaders that fill batches in
// parallel.
type numbers struct{}

func (numbers) Name() string { return "numbers" }

func (numbers) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		order := rand.Perm(benchSamples)
		for at := 0; at < len(order); at += benchBatch {
			if !yield(train.Batch{Spec: order[at : at+benchBatch]}, nil) {
				return
			}
		}
	}
}

// single is whole, one sample after the other.
type single struct{ whole }

func (s single) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		for _, i := range rand.Perm(benchSamples) {
			x := tensors.FromShape(shapes.Make(s.dtype, 28, 28))
			_ = x.MutableBytes(func(to []byte) { s.sample(to, s.pixels[i*benchPixels:][:benchPixels]) })
			y := tensors.FromFlatDataAndDimensions([]byte{s.labels[i]}, 1)
			if !yield(train.Batch{Inputs: []*tensors.Tensor{x}, Labels: []*tensors.Tensor{y}}, nil) {
				return
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func loaderOf(b *testing.B, w whole) *loader.Loader {
	b.Helper()
	types := map[dtypes.DType]dtype.Type{dtypes.Uint8: dtype.Uint8, dtypes.Float32: dtype.Float32}
	fields := []loader.Field{
		{Name: "image", DType: types[w.dtype], Shape: []int{28, 28}},
		{Name: "label", DType: dtype.Uint8},
	}
	data := loader.FromFunc(benchSamples, fields, func(_ context.Context, i int, row *loader.Row) error {
		w.sample(row.Bytes("image"), w.pixels[i*benchPixels:][:benchPixels])
		row.Bytes("label")[0] = w.labels[i]
		return nil
	})
	ld, err := loader.New(data, benchBatch, loader.Options{Shuffle: true})
	require.NoError(b, err)
	return ld
}

func leat(b *testing.B, w whole) train.Dataset {
	b.Helper()
	pf, err := prefetch.NewHost(loaderOf(b, w), prefetch.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, pf.Close()) })
	ds, err := gomlx.Epochs(b.Context(), gobackend.GetBackend(), pf, []string{"image"}, []string{"label"}, gomlx.Options{})
	require.NoError(b, err)
	return ds
}

// epoch takes all batches of an epoch, and does nothing with them.
func epoch(b *testing.B, ds train.Dataset) time.Duration {
	b.Helper()
	began, rows := time.Now(), 0
	for batch, err := range ds.Iter() {
		require.NoError(b, err)
		rows += batch.Inputs[0].Shape().Dimensions[0]
		require.NoError(b, batch.Finalize())
	}
	require.Equal(b, benchSamples, rows)
	return time.Since(began)
}

// BenchmarkBeside takes the same epochs by turns from a pipeline and from one of GoMLX's
// loaders, with the same code for each sample. "times" is how many samples the pipeline
// gives in the time in which the other gives one.
func BenchmarkBeside(b *testing.B) {
	pixels, labels := samples()
	for name, job := range jobs {
		w := whole{job, pixels, labels}
		others := map[string]func(*testing.B) train.Dataset{
			"Buffer":       func(*testing.B) train.Dataset { return dataset.Buffer(w, 3) },
			"Batch+Buffer": func(*testing.B) train.Dataset { return dataset.Buffer(batched(w), 3) },
			"ParallelMapOnHost": func(*testing.B) train.Dataset {
				return dataset.ParallelMapOnHost(numbers{}, func(b train.Batch) train.Batch { return w.fill(b.Spec.([]int)) })
			},
		}
		if name == "copy" {
			others["InMemory"] = func(b *testing.B) train.Dataset { return inMemory(b, w) }
		}
		for other, make := range others {
			b.Run("work="+name+"/other="+other, func(b *testing.B) {
				theirs, ours := make(b), leat(b, w)
				epoch(b, theirs)
				epoch(b, ours)
				var their, our time.Duration
				for b.Loop() {
					our += epoch(b, ours)
					their += epoch(b, theirs)
				}
				n := float64(b.N) * benchSamples
				b.ReportMetric(n/our.Seconds(), "samples/s")
				b.ReportMetric(n/their.Seconds(), "other-samples/s")
				b.ReportMetric(their.Seconds()/our.Seconds(), "times")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func batched(w whole) train.Dataset {
	return dataset.Batch(gobackend.GetBackend(), single{w}, benchBatch, true, true)
}

func inMemory(b *testing.B, w whole) train.Dataset {
	x := tensors.FromFlatDataAndDimensions(w.pixels, benchSamples, 28, 28)
	y := tensors.FromFlatDataAndDimensions(w.labels, benchSamples, 1)
	m, err := dataset.InMemoryFromData(gobackend.GetBackend(), "memory", []any{x}, []any{y})
	require.NoError(b, err)
	return m.Shuffle().BatchSize(benchBatch, true)
}

// BenchmarkStep trains a perceptron of 784-128-10, on batches that cost nothing to read. "%"
// is the part of a step in which tensors were made of the batch.
func BenchmarkStep(b *testing.B) {
	pixels, labels := samples()
	for name, job := range jobs {
		b.Run("work="+name, func(b *testing.B) {
			ld := loaderOf(b, whole{job, pixels, labels})
			ld, err := loader.Replay(b.Context(), ld, 4)
			require.NoError(b, err)
			pf, err := prefetch.NewHost(ld, prefetch.Options{})
			require.NoError(b, err)
			defer pf.Close()
			ds, err := gomlx.Steps(b.Context(), gobackend.GetBackend(), pf, []string{"image"}, []string{"label"}, gomlx.Options{})
			require.NoError(b, err)
			trainer := newTrainer(128, 10, 1)
			next, stop := iter.Pull2(ds.Iter())
			defer stop()
			var making, all time.Duration
			step := func() {
				began := time.Now()
				batch, err, _ := next()
				made := time.Now()
				require.NoError(b, err)
				metrics, err := trainer.TrainStep(batch)
				require.NoError(b, err)
				for _, m := range metrics {
					require.NoError(b, m.FinalizeAll())
				}
				making, all = making+made.Sub(began), all+time.Since(began)
			}
			step() // compiles
			making, all = 0, 0
			for b.Loop() {
				step()
			}
			b.ReportMetric(100*making.Seconds()/all.Seconds(), "%")
		})
	}
}
