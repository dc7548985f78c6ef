package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestOneHot(t *testing.T) {
	rows := func(columns ...int) []float32 {
		out := make([]float32, 3*len(columns))
		for i, c := range columns {
			if c >= 0 {
				out[3*i+c] = 1
			}
		}
		return out
	}
	for _, c := range []struct {
		labels []byte
		t      dtype.Type
		want   []float32
	}{
		{[]byte{2, 0, 1, 3, 255}, dtype.Uint8, rows(2, 0, 1, -1, -1)},
		{dtype.Bytes([]int32{1, -1, 2, math.MinInt32, 3, 0}), dtype.Int32, rows(1, -1, 2, -1, -1, 0)},
		// Cut to 32 bits, this label would be 1.
		{dtype.Bytes([]int64{2, 1<<32 + 1, -100, 0}), dtype.Int64, rows(2, -1, -1, 0)},
		{nil, dtype.Uint8, nil},
	} {
		r := kerneltest.CPU(t)
		out := r.Alloc(4 * len(c.want))
		require.NoError(t, OneHot(r.Stream, out, r.Upload(c.labels), OneHotParams{Labels: c.t, Classes: 3}))
		require.Equal(t, c.want, append([]float32(nil), dtype.As[float32](r.Download(out))...), "%v", c.t)
	}
}

func TestOneHotNamesEveryMistake(t *testing.T) {
	r := kerneltest.CPU(t)
	err := OneHot(r.Stream, r.Alloc(4), r.Alloc(4), OneHotParams{Labels: dtype.Float32})
	require.ErrorContains(t, err, "Labels is float32")
	require.ErrorContains(t, err, "Classes is 0")
	err = OneHot(r.Stream, r.Alloc(4), r.Alloc(8).Slice(1, 7), OneHotParams{Labels: dtype.Int32, Classes: 10})
	require.ErrorContains(t, err, "labels.Size() is 7")
	require.ErrorContains(t, err, "labels.Address() % 4 is")
	require.ErrorContains(t, err, "out.Size() is 4, want 40")
}
