//go:build invariants

package loader_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

func TestWhatReadForgetsToWriteIsPoison(t *testing.T) {
	ds := loader.FromSlice(make([]int, 6),
		[]loader.Field{{Name: "x", DType: dtype.Float32, Shape: []int{2}}, {Name: "y", DType: dtype.Int64}},
		func(_ context.Context, _ int, row *loader.Row) error {
			row.Float32s(0)[0] = 1
			return nil
		})
	l, err := loader.New(ds, loader.Options{BatchSize: 3, Epochs: 1})
	require.NoError(t, err)
	mem := heap(t, l, 1)
	run := l.Start(t.Context(), loader.Cursor{}, mem)
	for range 2 {
		f, err := run.Next(t.Context())
		require.NoError(t, err)
		for i, x := range values[float32](l, f, "x") {
			require.Equal(t, i%2 == 1, math.IsNaN(float64(x)))
		}
		require.Equal(t, []int64{-1, -1, -1}, values[int64](l, f, "y"))
		clear(f.Slot.Bytes)
		mem.Put(f.Slot)
	}
	require.NoError(t, run.Close())
}
