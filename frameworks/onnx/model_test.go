package onnx_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/onnx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Both a model that takes any number of rows and one that takes full batches only give each
// row of an epoch its scores, those of the short last batch too.
func TestResultsAreTheModels(t *testing.T) {
	needRuntime(t)
	for _, path := range []string{classify, fixed} {
		pf := open(t, pictures(10), 4, loader.Options{}, prefetch.Options{})
		m := load(t, path, pf, onnx.Options{})
		n := 0
		for r, err := range m.Map(t.Context(), pf.Batches(t.Context())) {
			require.NoError(t, err)
			require.Equal(t, min(4, 10-4*n), r.Len())
			require.Equal(t, r.Len(), r.Valid())
			require.Equal(t, prefetch.Position{Batch: n, First: int64(4 * n)}, r.Position())
			require.Equal(t, []int{r.Len(), 4}, r.Field("scores").Shape)
			require.Equal(t, []int{r.Len()}, r.Field("class").Shape)
			requireScores(t, r, 4*n, r.Len())
			n++
		}
		require.Equal(t, 3, n)
	}
}

// Results don't depend on workers or slots, and not on the rows beside them.
func TestResultsDependOnNothingElse(t *testing.T) {
	needRuntime(t)
	digest := func(workers, slots int) (all []byte) {
		pf := open(t, pictures(100), 8, loader.Options{Shuffle: true, Seed: 4, Workers: workers, Epochs: 2},
			prefetch.Options{Memory: prefetch.Memory{HostSlots: slots}})
		for r, err := range load(t, classify, pf, onnx.Options{Slots: slots}).Map(t.Context(), pf.All(t.Context())) {
			require.NoError(t, err)
			all = append(all, r.Field("scores").Bytes...)
		}
		return all
	}
	want := digest(1, 1)
	require.Len(t, want, 2*100*16)
	for _, workers := range []int{2, 7} {
		require.Equal(t, want, digest(workers, 3))
	}
}

// Rows that pad the last batch have results, and are told apart.
func TestPadding(t *testing.T) {
	needRuntime(t)
	pf := open(t, pictures(6), 4, loader.Options{Last: loader.Pad}, prefetch.Options{})
	var valid []int
	for r, err := range load(t, fixed, pf, onnx.Options{}).Map(t.Context(), pf.Batches(t.Context())) {
		require.NoError(t, err)
		require.Equal(t, 4, r.Len())
		valid = append(valid, r.Valid())
	}
	require.Equal(t, []int{4, 2}, valid)
}

// The second rank has nothing of the last global batch, and the result has no rows.
func TestABatchWithoutRows(t *testing.T) {
	needRuntime(t)
	for _, path := range []string{classify, fixed} {
		pf := open(t, pictures(9), 4, loader.Options{Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}}, prefetch.Options{})
		var lengths []int
		for r, err := range load(t, path, pf, onnx.Options{}).Map(t.Context(), pf.Batches(t.Context())) {
			require.NoError(t, err)
			require.Equal(t, []int{r.Len(), 4}, r.Field("scores").Shape)
			require.Len(t, r.Field("scores").Bytes, 16*r.Len())
			lengths = append(lengths, r.Len())
		}
		require.Equal(t, []int{4, 0}, lengths)
	}
}

// A part of the outputs, an input of another name, and results in memory of a device.
func TestOptions(t *testing.T) {
	needRuntime(t)
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	fields := []loader.Field{{Name: "image", DType: dtype.Float32, Shape: []int{2, 3}}}
	ds := loader.FromFunc(3, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "image", pixels(i)...)
	})
	pf := open(t, ds, 4, loader.Options{}, prefetch.Options{})
	m, err := onnx.New(classify, pf, onnx.Options{
		Fields:  map[string]string{"pixels": "image"},
		Outputs: []loader.Field{{Name: "class", DType: dtype.Int64}},
		Device:  dev,
	})
	require.NoError(t, err)
	for r, err := range m.Map(t.Context(), pf.Batches(t.Context())) {
		require.NoError(t, err)
		classes, err := prefetch.Column[int64](r, "class")
		require.NoError(t, err)
		for i := range classes {
			_, want := scores(i)
			require.Equal(t, want, classes[i])
		}
		_, ok := r.Lookup("scores")
		require.False(t, ok)
	}
	require.NoError(t, m.Close())
	require.NoError(t, dev.Close(), "it is the caller's, and has nothing of the model's left")
}

func TestMistakesAreReportedTogether(t *testing.T) {
	needRuntime(t)
	fields := []loader.Field{
		{Name: "pixels", DType: dtype.Float32, Shape: []int{3, 2}},
		{Name: "bytes", DType: dtype.Uint8, Shape: []int{2, 3}},
		{Name: "right", DType: dtype.Float32, Shape: []int{2, 3}},
		{Name: "packed", DType: dtype.Float32, Shape: []int{2, 3}, Ragged: &loader.Ragged{Offsets: "offsets"}},
	}
	ds := loader.FromFunc(4, fields, func(context.Context, int, *loader.Row) error { return errors.New("unread") })
	pf := open(t, ds, 4, loader.Options{}, prefetch.Options{})
	out := func(name string, t dtype.Type, shape ...int) []loader.Field {
		return []loader.Field{{Name: name, DType: t, Shape: shape}}
	}
	for _, c := range []struct {
		path   string
		field  string
		out    []loader.Field
		value  string
		output bool
		want   error
	}{
		{classify, "", nil, "pixels", false, onnx.ErrNoField},
		{classify, "pixels", nil, "pixels", false, onnx.ErrShape},
		{classify, "bytes", nil, "pixels", false, onnx.ErrType},
		{fixed, "packed", nil, "pixels", false, onnx.ErrPacked},
		{classify, "packed", nil, "pixels", false, onnx.ErrShape},
		{classify, "right", out("points", dtype.Float32, 4), "points", true, onnx.ErrNoValue},
		{classify, "right", out("scores", dtype.Float64, 4), "scores", true, onnx.ErrType},
		{classify, "right", out("scores", dtype.Float32, 5), "scores", true, onnx.ErrShape},
		{classify, "right", out("scores", dtype.Float32), "scores", true, onnx.ErrShape},
	} {
		_, err := onnx.New(c.path, pf, onnx.Options{Fields: map[string]string{"pixels": c.field}, Outputs: c.out})
		require.ErrorIs(t, err, c.want, "%+v", c)
		var value *onnx.ValueError
		require.ErrorAs(t, err, &value)
		require.Equal(t, c.value, value.Name)
		require.Equal(t, c.output, value.Output)
	}
	_, err := onnx.New(classify, pf, onnx.Options{Fields: map[string]string{"image": "right"}, Outputs: out("points", dtype.Bool), Slots: -1})
	require.ErrorIs(t, err, onnx.ErrNoValue)
	require.ErrorContains(t, err, "Options.Slots is -1")
	require.ErrorContains(t, err, `input "image"`)
	require.ErrorContains(t, err, `input "pixels"`)
	require.ErrorContains(t, err, `output "points"`)

	// The model has an input x and an output of [2, n].
	_, err = onnx.New("testdata/lengths.onnx", pf, onnx.Options{Fields: map[string]string{"x": "right"}})
	require.ErrorContains(t, err, `input "x": the shape is another`)
	require.ErrorContains(t, err, `output "found": the shape is another`)
	_, err = onnx.New("testdata/missing.onnx", pf, onnx.Options{})
	require.ErrorContains(t, err, "missing.onnx")
}

func TestAShapeThatTheModelDoesNotTell(t *testing.T) {
	needRuntime(t)
	fields := []loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{3}}}
	ds := loader.FromFunc(2, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", 0, float32(i), float32(i)) // one of two rows has two numbers that are not 0
	})
	pf := open(t, ds, 2, loader.Options{}, prefetch.Options{})
	_, err := onnx.New("testdata/lengths.onnx", pf, onnx.Options{})
	require.ErrorIs(t, err, onnx.ErrUnknownShape)
	for width, works := range map[int]bool{2: true, 3: false} {
		m := load(t, "testdata/lengths.onnx", pf, onnx.Options{Outputs: []loader.Field{{Name: "found", DType: dtype.Int64, Shape: []int{width}}}})
		for r, err := range m.Map(t.Context(), pf.Pass(t.Context())) {
			if !works {
				var failure *onnx.RunError
				require.ErrorAs(t, err, &failure)
				require.Zero(t, failure.Position)
				require.ErrorContains(t, err, "epoch 0, batch 0")
				continue
			}
			require.NoError(t, err)
			found, err := prefetch.Column[int64](r, "found")
			require.NoError(t, err)
			require.Equal(t, []int64{1, 1, 1, 2}, found)
		}
	}
}

func TestBatchesInDeviceMemoryAreRefused(t *testing.T) {
	needRuntime(t)
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	stream, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(pictures(6), 2, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.New(stream, ld, prefetch.Options{})
	require.NoError(t, err)
	_, err = onnx.New(classify, pf, onnx.Options{})
	require.ErrorIs(t, err, onnx.ErrDeviceMemory)
	require.NoError(t, pf.Close())
	require.NoError(t, stream.Close())
	require.NoError(t, dev.Close())
}

// 10,000 runs from 8 goroutines that let go of everything at once, under a garbage collector
// that never rests: each result is that of its own batch.
func TestRunsFromSeveralGoroutines(t *testing.T) {
	needRuntime(t)
	runs := 10_000
	if race {
		runs = 1000
	}
	const goroutines, rows = 8, 4
	pf := open(t, pictures(runs*rows), rows, loader.Options{Epochs: 1}, prefetch.Options{Memory: prefetch.Memory{HostSlots: goroutines + 1}})
	m := load(t, classify, pf, onnx.Options{Slots: goroutines})
	done, collected := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(collected)
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	}()
	rd, err := pf.Open(t.Context())
	require.NoError(t, err)
	var wg sync.WaitGroup
	batches := make(chan prefetch.Batch)
	for range goroutines {
		wg.Go(func() {
			for b := range batches {
				at := int(b.Position().First)
				r, err := m.Run(t.Context(), b)
				b.Release()
				if err != nil {
					t.Error(err)
					continue
				}
				got := dtype.As[float32](r.Field("scores").Bytes)
				for i := range rows {
					if want, _ := scores(at + i); got[4*i] != want[0] || got[4*i+3] != want[3] {
						t.Errorf("row %d: %v, want %v", at+i, got[4*i:][:4], want)
					}
				}
				r.Release()
			}
		})
	}
	n := 0
	for {
		b, err := rd.WaitNext(t.Context())
		if err == prefetch.ErrEpochEnd {
			break
		}
		require.NoError(t, err)
		batches <- b
		n++
	}
	close(batches)
	wg.Wait()
	close(done)
	<-collected
	require.Equal(t, runs, n)
	require.NoError(t, rd.Close())
}

func TestPullLeftHalfWay(t *testing.T) {
	needRuntime(t)
	pf := open(t, pictures(20), 4, loader.Options{}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
	m := load(t, classify, pf, onnx.Options{Slots: 1})
	step := 0
	for range 1000 {
		next, stop := iter.Pull2(m.Map(t.Context(), pf.All(t.Context())))
		for range 2 {
			r, err, ok := next()
			require.True(t, ok)
			require.NoError(t, err)
			requireScores(t, r, step%5*4, 4)
			step++
		}
		stop()
	}
}

// While a result is looked at its batch's memory is filled again: with memory for one batch
// the next one has been read when the body ends.
func TestMemoryIsFreeDuringABody(t *testing.T) {
	needRuntime(t)
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		data := loader.FromFunc(12, pictures(1).Fields(), func(_ context.Context, i int, row *loader.Row) error {
			reads.Add(1)
			return loader.Write(row, "pixels", pixels(i)...)
		})
		pf := open(t, data, 4, loader.Options{}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		n := int64(0)
		for r, err := range load(t, classify, pf, onnx.Options{}).Map(t.Context(), pf.Batches(t.Context())) {
			require.NoError(t, err)
			requireScores(t, r, int(4*n), 4)
			n++
			synctest.Wait()
			require.Equal(t, min(4*(n+1), 12), reads.Load())
		}
	})
}

// Beside what the binding allocates for tensors and a run there is nothing.
func TestAllocations(t *testing.T) {
	needRuntime(t)
	pf := open(t, pictures(4), 4, loader.Options{}, prefetch.Options{})
	m := load(t, classify, pf, onnx.Options{})
	session, err := ort.NewDynamicAdvancedSession(classify, []string{"pixels"}, []string{"scores", "class"}, nil)
	require.NoError(t, err)
	defer session.Destroy()
	in, scores, class := make([]byte, 4*6*4), make([]byte, 4*4*4), make([]byte, 4*8)
	tensor := func(memory []byte, of ort.TensorElementDataType, dims ...int64) ort.Value {
		v, err := ort.NewCustomDataTensor(dims, memory, of)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ins, outs := make([]ort.Value, 1), make([]ort.Value, 2)
	theirs := testing.AllocsPerRun(200, func() {
		ins[0] = tensor(in, ort.TensorElementDataTypeFloat, 4, 2, 3)
		outs[0] = tensor(scores, ort.TensorElementDataTypeFloat, 4, 4)
		outs[1] = tensor(class, ort.TensorElementDataTypeInt64, 4)
		if err := session.Run(ins, outs); err != nil {
			t.Fatal(err)
		}
		for _, v := range append(ins, outs...) {
			_ = v.Destroy()
		}
	})
	for b, err := range pf.Batches(t.Context()) {
		require.NoError(t, err)
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			r, err := m.Run(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			r.Release()
		}), theirs)
	}
}

// A result is the caller's until its release, and not later.
func TestLeases(t *testing.T) {
	needRuntime(t)
	pf := open(t, pictures(8), 4, loader.Options{}, prefetch.Options{})
	m, err := onnx.New(classify, pf, onnx.Options{Slots: 1})
	require.NoError(t, err)
	var kept onnx.Result
	for r, err := range m.Map(t.Context(), pf.Batches(t.Context())) {
		require.NoError(t, err)
		kept = r
	}
	require.Panics(t, func() { kept.Len() })
	require.Panics(t, func() { kept.Release() })
	require.Panics(t, func() { _, _ = kept.Lookup("scores") })
	require.Panics(t, func() { onnx.Result{}.Position() })

	rd, err := pf.Open(t.Context())
	require.NoError(t, err)
	b, err := rd.Next(t.Context())
	require.NoError(t, err)
	held, err := m.Run(t.Context(), b)
	require.NoError(t, err)
	require.Panics(t, func() { held.Field("points") })
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("mine")
	cancel(mine)
	_, err = m.Run(ctx, b)
	require.ErrorIs(t, err, mine, "all results are held")
	ended := make(chan error)
	go func() {
		_, err := m.Run(context.Background(), b)
		ended <- err
	}()
	require.Error(t, m.Close(), "one is held")
	require.ErrorIs(t, <-ended, onnx.ErrClosed, "nobody waits for a result any more")
	requireScores(t, held, 0, 4)
	_, err = m.Run(t.Context(), b)
	require.ErrorIs(t, err, onnx.ErrClosed)
	held.Release()
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	b.Release()
	require.NoError(t, rd.Close())
}

// What goes wrong in a dataset comes once, as itself, behind the results before it.
func TestFailures(t *testing.T) {
	needRuntime(t)
	broken := errors.New("broken")
	ds := loader.FromFunc(4, pictures(1).Fields(), func(ctx context.Context, i int, row *loader.Row) error {
		if i == 2 {
			return broken
		}
		return loader.Write(row, "pixels", pixels(i)...)
	})
	pf := open(t, ds, 2, loader.Options{}, prefetch.Options{})
	var errs []error
	n := 0
	for _, err := range load(t, classify, pf, onnx.Options{}).Map(t.Context(), pf.Batches(t.Context())) {
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

func TestWithoutTheRuntime(t *testing.T) {
	require.ErrorIs(t, uninitialized, onnx.ErrNotInitialized)
	needRuntime(t)
	_, err := onnx.New(classify, nil, onnx.Options{})
	require.ErrorContains(t, err, "no pipeline")
}
