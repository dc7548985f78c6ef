package loader_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// digests are those of all batches of an epoch.
func digests(t require.TestingT, l *loader.Loader, slots int) (all []loader.Digest) {
	mem := heap(t, l, slots)
	var out []loader.Slot
	for range slots { // other bytes in every slot: those that no row has don't count
		slot, err := mem.Get(context.Background())
		require.NoError(t, err)
		for i := range slot.Bytes {
			slot.Bytes[i] = byte(slots * i)
		}
		out = append(out, slot)
	}
	for _, slot := range out {
		mem.Put(slot)
	}
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	for {
		f, err := run.Next(context.Background())
		if err != nil {
			require.ErrorIs(t, err, loader.ErrEpochEnd)
			require.NoError(t, run.Close())
			return all
		}
		all = append(all, l.Layout().Digest(f))
		mem.Put(f.Slot)
	}
}

func TestEqualRunsHaveEqualDigests(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 3, Epochs: 1, Workers: 1}
	a := digests(t, newNumbers(t, numbers{n: 100}, 7, o), 1)
	o.Workers = 4
	b := digests(t, newNumbers(t, numbers{n: 100}, 7, o), 5)
	require.Len(t, a, 15)
	require.NoError(t, loader.FirstDifference(slices.Values(a), slices.Values(b)))

	text, err := json.Marshal(a)
	require.NoError(t, err)
	var read []loader.Digest
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, a, read)
}

func TestTheFirstBatchThatDiffersIsNamed(t *testing.T) {
	o := loader.Options{Shuffle: true, Seed: 3, Epochs: 1}
	whole := digests(t, newNumbers(t, numbers{n: 100}, 7, o), 2)
	order := newNumbers(t, numbers{n: 100}, 7, o).Order(0)
	changed := order.At(30) // row 2 of batch 4
	other := numbers{n: 100, before: func(_ context.Context, i int, row *loader.Row) error {
		if i == changed {
			row.Rand() // the row's next number is another one
			_ = row.Rand().Uint64()
		}
		return nil
	}}
	got := digests(t, newNumbers(t, other, 7, o), 2)
	for _, c := range []struct {
		name   string
		a, b   []loader.Digest
		number int
		fields []string
	}{
		{"one byte", whole, got, 4, []string{"random"}},
		{"the first ends", whole[:5], whole, 5, nil},
		{"the second ends", whole, whole[:5], 5, nil},
		{"the second is empty", whole, nil, 0, nil},
		{"another place", whole[1:], whole, 0, nil},
	} {
		err := loader.FirstDifference(slices.Values(c.a), slices.Values(c.b))
		var difference *loader.DifferenceError
		require.ErrorAs(t, err, &difference, c.name)
		require.Equal(t, c.number, difference.Number, c.name)
		require.Equal(t, c.fields, difference.Fields, c.name)
		require.Equal(t, c.number < len(c.a), difference.A != nil, c.name)
		require.Equal(t, c.number < len(c.b), difference.B != nil, c.name)
		require.NotContains(t, err.Error(), "%!", c.name)
	}
	require.NoError(t, loader.FirstDifference(slices.Values(whole[:0]), slices.Values(whole[:0])))
}

// Every byte of every row counts, and none behind the last row.
func TestADigestIsOfTheRowsAlone(t *testing.T) {
	l := newNumbers(t, numbers{n: 3}, 5, loader.Options{Epochs: 1})
	mem := heap(t, l, 1)
	run := l.Start(context.Background(), loader.Cursor{}, mem)
	f, err := run.Next(context.Background())
	require.NoError(t, err)
	before := l.Layout().Digest(f)
	inUse := 0
	for at := range f.Slot.Bytes {
		f.Slot.Bytes[at] ^= 0x10
		after := l.Layout().Digest(f)
		f.Slot.Bytes[at] ^= 0x10
		if loader.FirstDifference(slices.Values([]loader.Digest{before}), slices.Values([]loader.Digest{after})) != nil {
			inUse++
		}
	}
	require.Equal(t, 3*(8+4+8+8+3), inUse)
	mem.Put(f.Slot)
	require.NoError(t, run.Close())
}

func BenchmarkDigest(b *testing.B) {
	ds := newImages(150528, 64)
	l, err := loader.New(ds, 64, loader.Options{Epochs: 1})
	require.NoError(b, err)
	mem, err := loader.NewHeap(l.Layout().Size(), 1)
	require.NoError(b, err)
	run := l.Start(b.Context(), loader.Cursor{}, mem)
	f, err := run.Next(b.Context())
	require.NoError(b, err)
	b.SetBytes(l.Layout().Size())
	b.ReportAllocs()
	for b.Loop() {
		l.Layout().Digest(f)
	}
	mem.Put(f.Slot)
	require.NoError(b, run.Close())
}

// Two runs that should be one: the second has a sample that somebody has changed meanwhile.
func ExampleFirstDifference() {
	train := func(data []float32) (log []loader.Digest) {
		ds := loader.FromSlice(data, []loader.Field{{Name: "x", DType: dtype.Float32}},
			func(_ context.Context, x float32, row *loader.Row) error { return loader.Write(row, "x", x) })
		ld, err := loader.New(ds, 2, loader.Options{Shuffle: true, Seed: 1, Epochs: 1})
		if err != nil {
			panic(err)
		}
		mem, err := loader.NewHeap(ld.Layout().Size(), 2)
		if err != nil {
			panic(err)
		}
		run := ld.Start(context.Background(), loader.Cursor{}, mem)
		defer run.Close()
		for {
			batch, err := run.Next(context.Background())
			if err != nil {
				return log
			}
			log = append(log, ld.Layout().Digest(batch))
			mem.Put(batch.Slot)
		}
	}
	first := train([]float32{0, 1, 2, 3, 4, 5, 6, 7})
	second := train([]float32{0, 1, 2, 3, 4, 5.5, 6, 7})
	if err := loader.FirstDifference(slices.Values(first), slices.Values(second)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// loader: batch 2 of epoch 0, position 4, 2 rows, 2 of them valid: other bytes in x
}
