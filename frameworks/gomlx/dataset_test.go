package gomlx_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Every element type arrives with its bits, and a scalar of each sample as a vector, which
// stands upright as a label.
func TestTensorsAreTheFields(t *testing.T) {
	types := map[dtype.Type]dtypes.DType{
		dtype.Bool: dtypes.Bool, dtype.Uint8: dtypes.Uint8, dtype.Int8: dtypes.Int8, dtype.Uint16: dtypes.Uint16,
		dtype.Int16: dtypes.Int16, dtype.Uint32: dtypes.Uint32, dtype.Int32: dtypes.Int32, dtype.Uint64: dtypes.Uint64,
		dtype.Int64: dtypes.Int64, dtype.Float16: dtypes.Float16, dtype.BFloat16: dtypes.BFloat16,
		dtype.Float32: dtypes.Float32, dtype.Float64: dtypes.Float64,
	}
	for from, to := range types {
		t.Run(from.String(), func(t *testing.T) {
			fields := []loader.Field{
				{Name: "s", DType: from}, {Name: "v", DType: from, Shape: []int{1}},
				{Name: "m", DType: from, Shape: []int{2, 3}}, {Name: "none", DType: from, Shape: []int{0, 3}},
			}
			ones := func(_ context.Context, i int, row *loader.Row) error {
				for _, f := range fields {
					for j, b := 0, row.Bytes(f.Name); j < len(b); j++ {
						b[j] = byte(j % 2)
					}
				}
				return nil
			}
			pf := open(t, loader.FromFunc(5, fields, ones), 4, loader.Options{}, prefetch.Options{})
			names := []string{"s", "v", "m", "none"}
			ds, err := gomlx.Pass(t.Context(), gobackend.GetBackend(), pf, names, names, gomlx.Options{})
			require.NoError(t, err)
			var shapes [][]int
			for b, err := range ds.Iter() {
				require.NoError(t, err)
				for _, x := range append(b.Inputs, b.Labels...) {
					require.Equal(t, to, x.DType())
					shapes = append(shapes, x.Shape().Dimensions)
					require.NoError(t, x.ConstBytes(func(data []byte) {
						require.Len(t, data, x.Size()*from.Size())
						for j, v := range data {
							require.Equal(t, byte(j%(len(data)/max(1, x.Shape().Dimensions[0]))%2), v)
						}
					}))
				}
				require.NoError(t, b.Finalize())
			}
			var want [][]int
			for _, n := range []int{4, 1} {
				rest := [][]int{{n, 1}, {n, 2, 3}, {n, 0, 3}}
				want = append(append(append(append(want, []int{n}), rest...), []int{n, 1}), rest...)
			}
			require.Equal(t, want, shapes)
		})
	}
}

// What is made of a batch is a shared buffer of the backend for each field, exactly as large
// as that: no other buffer, and no transfer when a computation wants it.
func TestOneCopy(t *testing.T) {
	k := newBank()
	pf := open(t, stamped(20), 8, loader.Options{}, prefetch.Options{})
	ds, err := gomlx.Pass(t.Context(), k, pf, []string{"x"}, []string{"y"}, gomlx.Options{})
	require.NoError(t, err)
	for b, err := range ds.Iter() {
		require.NoError(t, err)
		for _, x := range append(b.Inputs, b.Labels...) {
			require.True(t, x.IsShared())
			require.NoError(t, x.MaterializeOnDevice(k, true, 0))
		}
		require.NoError(t, b.Finalize())
		require.NoError(t, b.Finalize(), "again")
	}
	require.EqualValues(t, 2*3, k.buffers.Load())
	require.EqualValues(t, 20*(3*4+4), k.bytes.Load())
	require.Zero(t, k.flat.Load())
	require.Zero(t, k.live.Load())
}

// Of a batch of which one tensor can't be made none is left, and the failure is the
// backend's own.
func TestABackendThatFails(t *testing.T) {
	for failAt := range int64(6) {
		k := newBank()
		k.failAt = failAt + 1
		pf := open(t, stamped(5), 4, loader.Options{}, prefetch.Options{})
		ds, err := gomlx.Epochs(t.Context(), k, pf, []string{"x"}, []string{"y"}, gomlx.Options{Mask: true})
		require.NoError(t, err)
		failures := 0
		for b, err := range ds.Iter() {
			if err != nil {
				require.ErrorIs(t, err, errBank)
				require.Zero(t, b)
				failures++
				continue
			}
			require.NoError(t, b.Finalize())
		}
		require.Equal(t, 1, failures)
		require.Zero(t, k.live.Load())
	}
}

func TestEpochs(t *testing.T) {
	pf := open(t, stamped(6), 4, loader.Options{Epochs: 4}, prefetch.Options{})
	ds := adapt(t, gomlx.Epochs, pf, gomlx.Options{})
	whole := [][]float32{{0, 1, 2, 3}, {4, 5}}
	require.Equal(t, whole, read(t, ds, 0))
	require.Equal(t, whole[:1], read(t, ds, 1))
	require.Equal(t, whole[1:], read(t, ds, 0), "the rest of the epoch that was left")
	require.Equal(t, whole, read(t, ds, 2), "left in its last batch")
	require.Equal(t, whole, read(t, ds, 0), "the epoch behind it")
	batches := 0
	for b, err := range ds.Iter() {
		require.ErrorIs(t, err, gomlx.ErrEnd)
		require.Zero(t, b)
		batches++
	}
	require.Equal(t, 1, batches)
}

func TestSteps(t *testing.T) {
	pf := open(t, stamped(6), 4, loader.Options{Epochs: 2}, prefetch.Options{})
	ds := adapt(t, gomlx.Steps, pf, gomlx.Options{})
	require.Equal(t, [][]float32{{0, 1, 2, 3}}, read(t, ds, 1))
	require.Equal(t, [][]float32{{4, 5}, {0, 1, 2, 3}, {4, 5}}, read(t, ds, 0))
	endless := adapt(t, gomlx.Steps, open(t, stamped(6), 4, loader.Options{}, prefetch.Options{}), gomlx.Options{})
	require.Len(t, read(t, endless, 1001), 1001)
}

func TestPass(t *testing.T) {
	pf := open(t, stamped(6), 4, loader.Options{Shuffle: true, Seed: 3, Epochs: 1}, prefetch.Options{})
	ds := adapt(t, gomlx.Pass, pf, gomlx.Options{})
	whole := read(t, ds, 0)
	require.Len(t, whole, 2)
	require.Equal(t, whole, read(t, ds, 0))
	require.Equal(t, whole[:1], read(t, ds, 1))
	require.Equal(t, whole, read(t, ds, 0), "behind one that was left")
}

// A state saved in the loop's body is that behind the batch in hand, so that a loop in
// another process goes on with the next.
func TestResume(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 7}
	one := open(t, stamped(50), 8, o, prefetch.Options{})
	var state loader.State
	var rest [][]float32
	ds := adapt(t, gomlx.Epochs, one, gomlx.Options{})
	n := 0
	for b, err := range ds.Iter() {
		require.NoError(t, err)
		switch n++; {
		case n == 3:
			state = one.State()
		case n > 3:
			rest = append(rest, first(t, b))
		}
		require.NoError(t, b.Finalize())
	}
	o.Workers = 3
	other := open(t, stamped(50), 8, o, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
	require.NoError(t, other.Restore(state))
	require.Equal(t, rest, read(t, adapt(t, gomlx.Epochs, other, gomlx.Options{}), 0))
}

// Batches have one shape with a mask, also where the last one is short or padded, and the
// mask says which rows are samples.
func TestMask(t *testing.T) {
	for _, last := range []loader.LastPolicy{loader.Keep, loader.Pad} {
		for name, make := range map[string]kind{"Epochs": gomlx.Epochs, "Steps": gomlx.Steps, "Pass": gomlx.Pass} {
			t.Run(last.String()+"/"+name, func(t *testing.T) {
				pf := open(t, stamped(6), 4, loader.Options{Last: last, Epochs: 1}, prefetch.Options{})
				var masks [][]bool
				var rows [][]float32
				for b, err := range adapt(t, make, pf, gomlx.Options{Mask: true}).Iter() {
					require.NoError(t, err)
					require.Len(t, b.Labels, 2)
					require.NoError(t, tensors.ConstFlatData(b.Labels[1], func(m []bool) { masks = append(masks, append([]bool{}, m...)) }))
					require.Equal(t, []int{len(masks[len(masks)-1])}, b.Labels[1].Shape().Dimensions)
					require.Equal(t, b.Labels[1].Size(), b.Labels[0].Shape().Dimensions[0])
					rows = append(rows, first(t, b))
					require.NoError(t, b.Finalize())
				}
				want, mask := [][]float32{{0, 1, 2, 3}, {4, 5, 0, 0}}, [][]bool{{true, true, true, true}, {true, true, false, false}}
				if last == loader.Pad {
					want[1] = []float32{4, 5, 0, 1}
				} else if name == "Pass" {
					want[1], mask[1] = want[1][:2], mask[1][:2]
				}
				require.Equal(t, want, rows)
				require.Equal(t, mask, masks)
			})
		}
	}
}

// The second rank has nothing of the last global batch: that one is left out.
func TestABatchWithoutRows(t *testing.T) {
	pf := open(t, stamped(9), 4, loader.Options{Last: loader.Exact, Shard: loader.Shard{Index: 1, Count: 2}}, prefetch.Options{})
	for _, mask := range []bool{false, true} {
		require.Equal(t, [][]float32{{4, 5, 6, 7}}, read(t, adapt(t, gomlx.Epochs, pf, gomlx.Options{Mask: mask}), 0))
	}
}

func TestMistakesAreReportedTogether(t *testing.T) {
	fields := []loader.Field{
		{Name: "words", DType: dtype.Int32, Shape: []int{5}, Ragged: &loader.Ragged{Offsets: "at", Length: "n"}},
	}
	ds := loader.FromFunc(3, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "words", make([]int32, i)...)
	})
	pf := open(t, ds, 2, loader.Options{}, prefetch.Options{})
	backend := gobackend.GetBackend()
	_, err := gomlx.Epochs(t.Context(), backend, pf, nil, []string{"label", "words", "at", "n"}, gomlx.Options{Mask: true})
	require.ErrorIs(t, err, gomlx.ErrNoInputs)
	require.ErrorIs(t, err, gomlx.ErrNoField)
	require.ErrorIs(t, err, gomlx.ErrPacked)
	require.ErrorContains(t, err, `field "label" is not in the batches`)
	require.ErrorContains(t, err, `field "words" has its samples packed`)
	require.ErrorContains(t, err, `field "at" has its samples packed`)
	require.NotContains(t, err.Error(), `"n"`)
	var field *gomlx.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "label", field.Field)

	// Without a mask nothing is filled up.
	packed, err := gomlx.Epochs(t.Context(), backend, pf, []string{"words", "at"}, nil, gomlx.Options{})
	require.NoError(t, err)
	var shapes [][]int
	for b, err := range packed.Iter() {
		require.NoError(t, err)
		shapes = append(shapes, b.Inputs[0].Shape().Dimensions, b.Inputs[1].Shape().Dimensions)
		require.NoError(t, b.Finalize())
	}
	require.Equal(t, [][]int{{1}, {3}, {2}, {2}}, shapes)

	_, err = gomlx.Pass(t.Context(), nil, pf, []string{"words"}, nil, gomlx.Options{})
	require.ErrorContains(t, err, "no backend")
	_, err = gomlx.Pass(t.Context(), backend, nil, []string{"words"}, nil, gomlx.Options{})
	require.ErrorContains(t, err, "no pipeline")
}

func TestBatchesInDeviceMemoryAreRefused(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	stream, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	ld, err := loader.New(stamped(6), 2, loader.Options{})
	require.NoError(t, err)
	pf, err := prefetch.New(stream, ld, prefetch.Options{})
	require.NoError(t, err)
	_, err = gomlx.Epochs(t.Context(), gobackend.GetBackend(), pf, []string{"x"}, nil, gomlx.Options{})
	require.ErrorIs(t, err, gomlx.ErrDeviceMemory)
	require.NoError(t, pf.Close())
	require.NoError(t, stream.Close())
	require.NoError(t, dev.Close())
}

// A padded field's rows are as long as the batch's longest, also where rows are filled up.
func TestARaggedField(t *testing.T) {
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{9, 2}, Ragged: &loader.Ragged{Mask: "mask"}}}
	ds := loader.FromFunc(3, fields, func(_ context.Context, i int, row *loader.Row) error {
		return loader.Write(row, "x", []byte{1, 2, 3, 4, 5, 6}[:2*i+2]...)
	})
	pf := open(t, ds, 2, loader.Options{}, prefetch.Options{})
	for mask, want := range map[bool][][]int{false: {{2, 2, 2}, {2, 2}, {1, 3, 2}, {1, 3}}, true: {{2, 2, 2}, {2, 2}, {2, 3, 2}, {2, 3}}} {
		d, err := gomlx.Epochs(t.Context(), gobackend.GetBackend(), pf, []string{"x", "mask"}, nil, gomlx.Options{Mask: mask})
		require.NoError(t, err)
		var shapes [][]int
		for b, err := range d.Iter() {
			require.NoError(t, err)
			shapes = append(shapes, b.Inputs[0].Shape().Dimensions, b.Inputs[1].Shape().Dimensions)
			require.NoError(t, b.Finalize())
		}
		require.Equal(t, want, shapes)
	}
}

// What goes wrong in a dataset comes once, as itself, behind the batches before it; and so
// does the end of the context.
func TestFailures(t *testing.T) {
	broken := errors.New("broken")
	fields := []loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{3}}}
	data := loader.FromFunc(6, fields, func(_ context.Context, i int, row *loader.Row) error {
		if i == 4 {
			return broken
		}
		return loader.Write(row, "x", float32(i), 0, 0)
	})
	pf := open(t, data, 2, loader.Options{}, prefetch.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	ds, err := gomlx.Epochs(ctx, gobackend.GetBackend(), pf, []string{"x"}, nil, gomlx.Options{})
	require.NoError(t, err)
	var ends []error
	n := 0
	for b, err := range ds.Iter() {
		if err != nil {
			ends = append(ends, err)
			continue
		}
		n++
		require.NoError(t, b.Finalize())
	}
	require.Equal(t, 2, n)
	require.Len(t, ends, 1)
	require.ErrorIs(t, ends[0], broken)

	cancel(broken)
	for _, err := range ds.Iter() {
		require.ErrorIs(t, err, broken)
	}
}

// GoMLX's loops range by iter.Pull2 and leave in the middle: no goroutine, lease or tensor is
// left over, and no batch is missed.
func TestPullLeftHalfWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newBank()
		pf := open(t, stamped(20), 4, loader.Options{}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 2}})
		ds, err := gomlx.Steps(t.Context(), k, pf, []string{"x"}, []string{"y"}, gomlx.Options{})
		require.NoError(t, err)
		step := 0
		for range 1000 {
			next, stop := iter.Pull2(ds.Iter())
			for range 2 {
				b, err, ok := next()
				require.True(t, ok)
				require.NoError(t, err)
				i := float32(step % 5 * 4)
				require.Equal(t, []float32{i, i + 1, i + 2, i + 3}, first(t, b))
				require.NoError(t, b.Finalize())
				step++
			}
			stop()
		}
		require.Zero(t, k.live.Load())
	})
}

// During a step the batch's memory is filled again: with memory for one batch the next one
// has been read when the body of this one ends.
func TestMemoryIsFreeDuringAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		data := loader.FromFunc(12, stamped(1).Fields(), func(ctx context.Context, i int, row *loader.Row) error {
			reads.Add(1)
			return stamped(12).Read(ctx, i, row)
		})
		pf := open(t, data, 4, loader.Options{}, prefetch.Options{Memory: prefetch.Memory{HostSlots: 1}})
		n := int64(0)
		for b, err := range adapt(t, gomlx.Epochs, pf, gomlx.Options{}).Iter() {
			require.NoError(t, err)
			n++
			synctest.Wait()
			require.Equal(t, min(4*(n+1), 12), reads.Load())
			require.NoError(t, b.Finalize())
		}
	})
}

// Beside what GoMLX allocates for the tensors there is one slice a batch, which is handed over
// with them.
func TestAllocations(t *testing.T) {
	backend := gobackend.GetBackend()
	var data [8 * 3 * 4]byte
	x, y := shapes.Make(dtypes.Float32, 8, 3), shapes.Make(dtypes.Int32, 8, 1)
	theirs := testing.AllocsPerRun(500, func() {
		for _, s := range []shapes.Shape{x, y} {
			v, err := tensors.FromRaw(backend, 0, s, data[:s.ByteSize()])
			if err != nil || v.FinalizeAll() != nil {
				t.Fatal(err)
			}
		}
	})
	// Replay's batches are read once, so that readers allocate nothing.
	ld, err := loader.New(stamped(64), 8, loader.Options{})
	require.NoError(t, err)
	ld, err = loader.Replay(t.Context(), ld, 8)
	require.NoError(t, err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	require.NoError(t, err)
	defer pf.Close()
	next, stop := iter.Pull2(adapt(t, gomlx.Steps, pf, gomlx.Options{}).Iter())
	defer stop()
	all := testing.AllocsPerRun(500, func() {
		b, err, _ := next()
		if err != nil || b.Finalize() != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, all, theirs+1)
}

// Two ranges at once are refused, and the first goes on.
func TestOneRangeAtATime(t *testing.T) {
	pf := open(t, stamped(6), 2, loader.Options{}, prefetch.Options{})
	ds := adapt(t, gomlx.Epochs, pf, gomlx.Options{})
	n := 0
	for b, err := range ds.Iter() {
		require.NoError(t, err)
		require.NoError(t, b.Finalize())
		for _, err := range ds.Iter() {
			require.ErrorIs(t, err, prefetch.ErrBusy)
		}
		n++
	}
	require.Equal(t, 3, n)
}

// GoMLX's own wrappers stand on a Dataset.
func TestUnderGoMLXsWrappers(t *testing.T) {
	pf := open(t, stamped(40), 4, loader.Options{}, prefetch.Options{})
	ds := adapt(t, gomlx.Epochs, pf, gomlx.Options{Name: "numbers"})
	buffered := dataset.Buffer(ds, 3)
	require.Equal(t, "numbers", buffered.Name())
	require.Len(t, read(t, buffered, 0), 10)
	mapped := dataset.ParallelMapOnHost(ds, func(b train.Batch) train.Batch { return b })
	require.Len(t, read(t, mapped, 0), 10)
	require.Len(t, read(t, dataset.Take(ds, 3), 0), 3)
}
