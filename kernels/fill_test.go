package kernels

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestFill(t *testing.T) {
	r := kerneltest.CPU(t)
	for _, typ := range convertibleTypes {
		out := r.Alloc(5 * typ.Size())
		require.NoError(t, Fill(r.Stream, out, typ, 2.5))
		for got := r.Download(out); len(got) > 0; got = got[typ.Size():] {
			require.Equal(t, fromFloat32(typ, 2.5), got[:typ.Size()], "%v", typ)
		}
	}
	require.ErrorContains(t, Fill(r.Stream, r.Alloc(4), dtype.Int8, 0), "t is int8")
	require.ErrorContains(t, Fill(r.Stream, r.Alloc(3), dtype.Float16, 0), "out.Size() is 3")
}

func TestSpinTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kerneltest.CPU(t)
		start := time.Now()
		require.NoError(t, Spin(r.Stream, 3*time.Millisecond))
		require.NoError(t, Spin(r.Stream, 4*time.Millisecond))
		require.Zero(t, time.Since(start), "the caller doesn't wait")
		require.NoError(t, r.Stream.Synchronize(t.Context()))
		require.Equal(t, 7*time.Millisecond, time.Since(start))
		require.ErrorContains(t, Spin(r.Stream, -1), "d is -1ns")
	})
}
