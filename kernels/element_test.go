package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// half16 is a 16-bit format by its definition, in float64.
type half16 struct {
	name               string
	exponent, fraction int // bits
	from               func(uint16) float32
	to                 func(float32) uint16
}

var halves = []half16{
	{"float16", 5, 10, FromFloat16, ToFloat16},
	{"bfloat16", 8, 7, FromBFloat16, ToBFloat16},
}

func (f half16) value(h uint16) float64 {
	bias := 1<<(f.exponent-1) - 1
	exponent := int(h) >> f.fraction & (1<<f.exponent - 1)
	fraction := float64(int(h) & (1<<f.fraction - 1))
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, 1-bias-f.fraction)
	case 1<<f.exponent - 1:
		v = math.Inf(1)
		if fraction != 0 {
			return math.NaN()
		}
	default:
		v = math.Ldexp(fraction+math.Ldexp(1, f.fraction), exponent-bias-f.fraction)
	}
	if h>>15 != 0 {
		v = math.Copysign(v, -1)
	}
	return v
}

func TestEveryHalfToFloat32(t *testing.T) {
	for _, f := range halves {
		for i := range 1 << 16 {
			h := uint16(i)
			want := math.Float32bits(float32(f.value(h)))
			if math.IsNaN(f.value(h)) {
				want = nan32
			}
			if got := math.Float32bits(f.from(h)); got != want {
				require.Equal(t, want, got, "%s %#04x", f.name, h)
			}
		}
	}
}

// Between two neighbouring halves there is one boundary, their middle: it goes to
// the even one, and what is a little off goes to the nearer.
func TestEveryBoundaryBetweenHalves(t *testing.T) {
	for _, f := range halves {
		top := uint16(1<<f.exponent-1) << f.fraction // infinity
		for h := range top {
			low, high := f.value(h), f.value(h+1)
			if h+1 == top { // where the next number would be, infinity begins
				high = low + (low - f.value(h-1))
			}
			middle := float32((low + high) / 2)
			even := h + h&1
			below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32)
			for _, sign := range []uint16{0, 0x8000} {
				signed := func(v float32) float32 { return float32(math.Copysign(float64(v), 1-2*float64(sign>>15))) }
				got := [...]uint16{f.to(signed(float32(low))), f.to(signed(below)), f.to(signed(middle)), f.to(signed(above))}
				if want := [...]uint16{h | sign, h | sign, even | sign, (h + 1) | sign}; got != want {
					require.Equal(t, want, got, "%s %#04x", f.name, h)
				}
			}
		}
		require.Equal(t, top, f.to(float32(math.Inf(1))), f.name)
		require.Equal(t, top|0x8000, f.to(float32(math.Inf(-1))), f.name)
		require.Equal(t, top, f.to(math.MaxFloat32), f.name)
		require.Zero(t, f.to(math.SmallestNonzeroFloat32), f.name)
	}
}

func TestEveryNaNIsCanonical(t *testing.T) {
	for _, b := range []uint32{0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffc12345, 0xffffffff} {
		f := math.Float32frombits(b)
		require.EqualValues(t, nan16, ToFloat16(f))
		require.EqualValues(t, nan16, ToBFloat16(f))
		require.Zero(t, ToUint8(f))
	}
}

func TestFloat32ToUint8(t *testing.T) {
	for i := -64; i <= 258*64; i++ {
		f := float32(i) / 64
		want := min(255, max(0, math.RoundToEven(float64(f))))
		require.EqualValues(t, want, ToUint8(f), "%v", f)
	}
	for f, want := range map[float32]uint8{
		float32(math.Inf(1)): 255, float32(math.Inf(-1)): 0, math.MaxFloat32: 255, 0.50000006: 1, 254.49998: 254, 254.5: 254,
		math.SmallestNonzeroFloat32: 0,
	} {
		require.Equal(t, want, ToUint8(f), "%v", f)
	}
}
