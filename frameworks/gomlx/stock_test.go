package gomlx_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/frameworks/gomlx"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

const wideRow = 30_000 // bytes, so that a batch of 4 is worth a stock

// wide are n samples of wideRow bytes, each of its index.
func wide(n int) loader.Dataset {
	fields := []loader.Field{{Name: "x", DType: dtype.Uint8, Shape: []int{wideRow}}, {Name: "y", DType: dtype.Uint8}}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		for _, name := range []string{"x", "y"} {
			for j, b := 0, row.Bytes(name); j < len(b); j++ {
				b[j] = byte(i)
			}
		}
		return nil
	})
}

// rowsOf are the rows of a tensor that are of one value each.
func rowsOf(t *testing.T, x *tensors.Tensor, row int) (values []byte) {
	t.Helper()
	require.NoError(t, x.ConstBytes(func(data []byte) {
		for ; len(data) > 0; data = data[row:] {
			for _, b := range data[:row] {
				if b != data[0] {
					t.Fatalf("a row of %d and %d", data[0], b)
				}
			}
			values = append(values, data[0])
		}
	}))
	return values
}

// Tensors made ahead are the consumer's or freed, wherever a range is left; the short batch at
// an epoch's end has its own; and the pipeline's state is not ahead of the consumer.
func TestTensorsMadeAhead(t *testing.T) {
	for _, mask := range []bool{false, true} {
		t.Run(fmt.Sprint("mask=", mask), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newBank()
				pf := open(t, wide(18), 4, loader.Options{}, prefetch.Options{})
				ds, err := gomlx.Steps(t.Context(), k, pf, []string{"x"}, []string{"y"}, gomlx.Options{Mask: mask})
				require.NoError(t, err)
				step := 0
				for range 100 {
					next, stop := iter.Pull2(ds.Iter())
					for range 3 {
						b, err, ok := next()
						require.True(t, ok)
						require.NoError(t, err)
						first := byte(step % 5 * 4)
						want := []byte{first, first + 1, first + 2, first + 3}
						if step%5 == 4 {
							want = []byte{16, 17}
							if mask {
								want = append(want, 0, 0)
							}
						}
						require.Equal(t, want, rowsOf(t, b.Inputs[0], wideRow))
						require.Equal(t, want, rowsOf(t, b.Labels[0], 1))
						require.NoError(t, b.Finalize())
						step++
						s := pf.State()
						require.Equal(t, int64(step/5*18+step%5*4), int64(s.Epoch*18)+s.Position)
					}
					stop()
				}
				require.Zero(t, k.live.Load())
			})
		})
	}
}

// A backend that runs out of memory ends the range with its error, and leaves nothing.
func TestNoMemoryAhead(t *testing.T) {
	for at := int64(1); at < 30; at++ {
		synctest.Test(t, func(t *testing.T) {
			k := newBank()
			k.failAt = at
			pf := open(t, wide(40), 4, loader.Options{Epochs: 1}, prefetch.Options{})
			ds, err := gomlx.Epochs(t.Context(), k, pf, []string{"x"}, []string{"y"}, gomlx.Options{})
			require.NoError(t, err)
			var n int
			var ends []error
			for b, err := range ds.Iter() {
				if err != nil {
					ends = append(ends, err)
					continue
				}
				require.Equal(t, byte(4*n), rowsOf(t, b.Inputs[0], wideRow)[0])
				require.NoError(t, b.Finalize())
				n++
			}
			if len(ends) == 0 {
				require.Equal(t, 10, n) // what failed was made for nobody
			} else {
				require.Len(t, ends, 1)
				require.ErrorIs(t, ends[0], errBank)
			}
			require.Zero(t, k.live.Load())
		})
	}
}
