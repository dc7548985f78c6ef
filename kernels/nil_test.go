package kernels

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

// A call without a stream is refused as others are, and says what is missing.
func TestACallWithoutAStreamIsRefused(t *testing.T) {
	r := kerneltest.CPU(t)
	out, in := r.Alloc(16), r.Alloc(8)
	for name, err := range map[string]error{
		"Fill":            Fill(nil, out, dtype.Uint8, 1),
		"Fill of nothing": Fill(nil, device.View{}, dtype.Uint8, 1),
		"Convert":         Convert(nil, out, in, dtype.Float16, dtype.Uint8),
		"Checksum":        Checksum(nil, out, in),
		"Gather":          Gather(nil, out, in, r.Alloc(8), GatherParams{RowBytes: 8, Index: dtype.Int32}),
		"OneHot":          OneHot(nil, out, in, OneHotParams{Labels: dtype.Int32, Classes: 2}),
		"Normalize":       Normalize(nil, out, in, NormalizeParams{}),
		"Crop":            Crop(nil, out, in, CropParams{Height: 2, Width: 2, OutHeight: 1, OutWidth: 1, PixelBytes: 1}),
		"Spin":            Spin(nil, time.Second),
	} {
		var refused *Error
		require.ErrorAs(t, err, &refused, name)
		require.ErrorContains(t, err, "s is <nil>, want a stream", name)
		require.ErrorIs(t, err, device.ErrInvalid, name)
	}
}
