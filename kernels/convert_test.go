package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/kernels/kerneltest"
)

var convertibleTypes = []dtype.Type{dtype.Uint8, dtype.Float16, dtype.BFloat16, dtype.Float32}

// every is every value of t; of float32 every exponent with fractions that
// rounding looks at, and random ones.
func every(t dtype.Type) []byte {
	switch t {
	case dtype.Uint8:
		b := make([]byte, 256)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	case dtype.Float32:
		var f []uint32
		random := rand.New(rand.NewPCG(3, 3))
		for e := range uint32(512) {
			for bit := range 23 {
				f = append(f, e<<23|1<<bit, e<<23|1<<bit-1, e<<23|(1<<23-1)&^(1<<bit-1), e<<23|random.Uint32()>>9)
			}
			f = append(f, e<<23)
		}
		for i := range uint32(256 * 16) { // the neighbourhood of each byte's value
			f = append(f, math.Float32bits(float32(i)/16), math.Float32bits(float32(i)/16)+1)
		}
		return dtype.Bytes(f)
	}
	h := make([]uint16, 1<<16)
	for i := range h {
		h[i] = uint16(i)
	}
	return dtype.Bytes(h)
}

// asFloat32 and fromFloat32 state the rule: by way of float32.
func asFloat32(t dtype.Type, b []byte) float32 {
	switch t {
	case dtype.Uint8:
		return float32(b[0])
	case dtype.Float16:
		return FromFloat16(uint16(b[0]) | uint16(b[1])<<8)
	case dtype.BFloat16:
		return FromBFloat16(uint16(b[0]) | uint16(b[1])<<8)
	}
	return dtype.As[float32](b)[0]
}

func fromFloat32(t dtype.Type, f float32) []byte {
	switch t {
	case dtype.Uint8:
		return []byte{ToUint8(f)}
	case dtype.Float16:
		return dtype.Bytes([]uint16{ToFloat16(f)})
	case dtype.BFloat16:
		return dtype.Bytes([]uint16{ToBFloat16(f)})
	}
	return dtype.Bytes([]float32{f})
}

func TestConvertEveryValue(t *testing.T) {
	r := kerneltest.CPU(t)
	for _, from := range convertibleTypes {
		for _, to := range convertibleTypes {
			in := every(from)
			n := len(in) / from.Size()
			out := r.Alloc(n * to.Size())
			require.NoError(t, Convert(r.Stream, out, r.Upload(in), to, from))
			got := r.Download(out)
			if from == to {
				require.Equal(t, in, got)
				continue
			}
			var want []byte
			for i := range n {
				want = append(want, fromFloat32(to, asFloat32(from, in[i*from.Size():][:from.Size()]))...)
			}
			require.Equal(t, want, got, "%v to %v", from, to)
		}
	}
}

func TestConvertNamesEveryMistake(t *testing.T) {
	r := kerneltest.CPU(t)
	err := Convert(r.Stream, r.Alloc(4), r.Alloc(4), dtype.Bool, dtype.Float64)
	require.ErrorContains(t, err, "to is bool")
	require.ErrorContains(t, err, "from is float64")
	err = Convert(r.Stream, r.Alloc(4), r.Alloc(8).Slice(1, 7), dtype.Uint8, dtype.Float32)
	require.ErrorContains(t, err, "in.Size() is 7")
	require.ErrorContains(t, err, "in.Address() % 4 is")
	require.ErrorContains(t, err, "out.Size() is 4, want 1")
}
