//go:build invariants

package loader_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A field that was asked for and not written to its end, or at all, is found by
// what the row held before.
func TestAFieldWrittenInPartFailsTheSample(t *testing.T) {
	const bad = 4
	for _, c := range []struct {
		dtype         dtype.Type
		elements      int
		from, to      int // bytes not written
		offset, bytes int64
	}{
		{dtype.Float32, 2, 4, 8, 4, 4},
		{dtype.Int32, 1, 0, 4, 0, 4},
		{dtype.Int64, 1, 0, 8, 0, 8},
		{dtype.Int64, 1, 4, 8, 4, 4},
		{dtype.Float64, 3, 8, 16, 8, 8},
		{dtype.BFloat16, 9, 0, 18, 0, 18},
		{dtype.Float16, 5, 6, 10, 6, 4},
		{dtype.Uint8, 1000, 0, 1000, 0, 1000},
		{dtype.Uint8, 1001, 900, 1001, 900, 101},
		{dtype.Uint8, 1000, 500, 508, 500, 8},
		{dtype.Bool, 4, 0, 4, 0, 4},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			for _, fill := range []byte{0, 0xff} { // what a sample may well consist of
				ds := loader.FromSlice([]int{0, 1, 2, 3, 4, 5}, []loader.Field{{Name: "x", DType: c.dtype, Shape: []int{c.elements}}},
					func(_ context.Context, n int, row *loader.Row) error {
						for i, b := 0, row.Bytes("x"); i < len(b); i++ {
							if n != bad || i < c.from || i >= c.to {
								b[i] = fill
							}
						}
						return nil
					})
				l, err := loader.New(ds, 2, loader.Options{Epochs: 1, Workers: 1})
				require.NoError(t, err)
				mem := heap(t, l, 1)
				run := l.Start(t.Context(), loader.Cursor{}, mem)
				for range bad / 2 {
					f, err := run.Next(t.Context())
					require.NoError(t, err)
					mem.Put(f.Slot)
				}
				_, err = run.Next(t.Context())
				var where *loader.Error
				require.ErrorAs(t, err, &where)
				require.Equal(t, bad, where.Sample)
				var unwritten *loader.UnwrittenError
				require.ErrorAs(t, err, &unwritten)
				require.Equal(t, "x", unwritten.Field.Name)
				// A byte beside the gap may equal its poison.
				require.InDelta(t, c.offset, unwritten.Offset, 1)
				require.InDelta(t, c.bytes, unwritten.Bytes, 2)
				require.NoError(t, run.Close())
			}
		})
	}
}

// Of a ragged field what counts must be written, and what does not need not be.
func TestARaggedFieldWrittenInPartFailsTheSample(t *testing.T) {
	const maximum = 100
	for _, c := range []struct{ length, written, offset, bytes int }{
		{50, 50, 0, 0}, {50, 46, 46, 4}, {50, 0, 0, 50}, {maximum, 90, 90, 10}, {8, 0, 0, 8}, {0, 0, 0, 0}, {4, 0, 0, 4}, {50, 100, 0, 0},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			ds := loader.FromFunc(1, []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{maximum}, Ragged: &loader.Ragged{}}},
				func(_ context.Context, n int, row *loader.Row) error {
					clear(row.Bytes("x")[:c.written])
					return row.SetLen("x", c.length)
				})
			l, err := loader.New(ds, 1, loader.Options{Epochs: 1, Workers: 1})
			require.NoError(t, err)
			mem := heap(t, l, 1)
			run := l.Start(t.Context(), loader.Cursor{}, mem)
			b, err := run.Next(t.Context())
			require.NoError(t, run.Close())
			if c.bytes == 0 {
				require.NoError(t, err)
				require.Equal(t, make([]byte, c.length), l.Layout().Rows(0, b))
				return
			}
			var unwritten *loader.UnwrittenError
			require.ErrorAs(t, err, &unwritten)
			require.EqualValues(t, c.offset, unwritten.Offset)
			require.EqualValues(t, c.bytes, unwritten.Bytes)
		})
	}
}
