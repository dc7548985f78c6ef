package kernels

import "math"

// The canonical NaNs.
const (
	nan32 = 0x7fffffff
	nan16 = 0x7fff
)

// FromFloat16 is the value of an IEEE 754 binary16, exactly.
func FromFloat16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exponent == 0: // zero or subnormal
		return math.Float32frombits(sign | math.Float32bits(float32(float32(fraction)*0x1p-24)))
	case exponent < 31:
		return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
	case fraction == 0:
		return math.Float32frombits(sign | 0x7f800000)
	}
	return math.Float32frombits(nan32)
}

// ToFloat16 is the binary16 nearest to f, ties to even. From 65520 on it is
// infinity.
func ToFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, abs := uint16(b>>16&0x8000), b&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return nan16
	case abs >= 0x477ff000: // 65520
		return sign | 0x7c00
	case abs < 0x38800000: // 2^-14: the result is subnormal
		// 0.5 has the spacing of binary16's subnormals, so the sum rounds as they do.
		sum := float32(math.Float32frombits(abs) + 0.5)
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	abs += 0xfff + abs>>13&1
	return sign | uint16((abs-(127-15)<<23)>>13)
}

// FromBFloat16 is the value of a bfloat16, exactly.
func FromBFloat16(h uint16) float32 {
	b := uint32(h) << 16
	if b&0x7fffffff > 0x7f800000 {
		b = nan32
	}
	return math.Float32frombits(b)
}

// ToBFloat16 is the bfloat16 nearest to f, ties to even.
func ToBFloat16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return nan16
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// ToUint8 is the integer nearest to f, ties to even, clamped to 0 and 255; NaN
// is 0.
func ToUint8(f float32) uint8 {
	if !(f > 0) {
		return 0
	}
	if f >= 255 {
		return 255
	}
	// 2^23 leaves no bits for a fraction, so the sum rounds to an integer.
	return uint8(math.Float32bits(float32(f + 0x1p23)))
}
