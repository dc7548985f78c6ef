package loader

import (
	"math"

	"github.com/leat-go/leat/dtype"
)

// elementOf is v as an element of type t, in the lowest bits. It reports false if the type
// has no such value.
func elementOf(t dtype.Type, v float64) (bits uint64, ok bool) {
	switch t {
	case dtype.Float64:
		return math.Float64bits(v), true
	case dtype.Float32, dtype.BFloat16:
		f := float32(v)
		bits, ok = uint64(math.Float32bits(f)), float64(f) == v || v != v
		if t == dtype.BFloat16 {
			bits, ok = bits>>16, ok && bits&0xffff == 0
		}
		return bits, ok
	case dtype.Float16:
		return float16Of(v)
	case dtype.Bool:
		return whole(v, 0, 1)
	}
	size := 8 * t.Size()
	switch t {
	case dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64:
		return whole(v, 0, math.Ldexp(1, size)-1)
	}
	bits, ok = whole(v, -math.Ldexp(1, size-1), math.Ldexp(1, size-1)-1)
	return bits & (math.MaxUint64 >> (64 - size)), ok
}

// whole is v as an integer of lowest to highest. Of 64 bits the highest is one more than
// there is, because a float64 has no nearer one.
func whole(v, lowest, highest float64) (bits uint64, ok bool) {
	switch {
	case v != math.Trunc(v) || v < lowest || v > highest || v >= math.MaxUint64 || lowest < 0 && v >= math.MaxInt64:
		return 0, false
	case v < 0:
		return uint64(int64(v)), true
	}
	return uint64(v), true
}

// float16Of is v as an IEEE 754 binary16.
func float16Of(v float64) (bits uint64, ok bool) {
	bits = math.Float64bits(v) >> 63 << 15
	v = math.Abs(v)
	switch {
	case v != v:
		return 0x7e00, true
	case math.IsInf(v, 1):
		return bits | 0x7c00, true
	case v == 0:
		return bits, true
	}
	fraction, exponent := math.Frexp(v) // v = fraction·2^exponent, of 1/2 to 1
	biased := max(exponent+14, 1)       // below 2^-14 the exponent stays that of the least
	mantissa := math.Ldexp(fraction, exponent-biased+25)
	if mantissa != math.Trunc(mantissa) || biased > 30 {
		return 0, false
	}
	// Of what is not below 2^-14 the mantissa's highest bit is implied.
	return bits | uint64(biased-1)<<10 + uint64(mantissa), true
}
