package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

func TestCallsAllocateNothing(t *testing.T) {
	r := kerneltest.CPU(t)
	in, out, small := r.Alloc(12), r.Alloc(48), r.Alloc(8)
	mean := []float32{0, 0, 0}
	allocs := testing.AllocsPerRun(100, func() {
		for _, err := range [...]error{
			Normalize(r.Stream, out, in, NormalizeParams{Mean: mean}),
			OneHot(r.Stream, out, in, OneHotParams{Labels: dtype.Int32, Classes: 4}),
			Checksum(r.Stream, small, in),
			Convert(r.Stream, out, in, dtype.Float32, dtype.Uint8),
			Crop(r.Stream, out.Slice(0, 12), in, CropParams{Height: 2, Width: 2, OutHeight: 2, OutWidth: 2, PixelBytes: 3}),
			Gather(r.Stream, out.Slice(0, 36), in, in, GatherParams{RowBytes: 12, Index: dtype.Int32}),
			Fill(r.Stream, out, dtype.Float16, 1),
			r.Stream.Synchronize(t.Context()),
		} {
			if err != nil {
				panic(err)
			}
		}
	})
	require.Zero(t, allocs)
}
