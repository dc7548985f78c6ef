// Element types: the counterpart of element.go, by the same integer arithmetic.
#pragma once
#include "cuda.cuh"

DEVICE float from_f16(u16 h) {
	u32 sign = (u32)(h & 0x8000) << 16, exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
	if (exponent == 0) return from_bits(sign | bits((float)fraction * 0x1p-24f));
	if (exponent < 31) return from_bits(sign | (exponent + 127 - 15) << 23 | fraction << 13);
	return from_bits(fraction == 0 ? sign | 0x7f800000 : 0x7fffffff);
}

DEVICE u16 to_f16(float f) {
	u32 b = bits(f), sign = b >> 16 & 0x8000, abs = b & 0x7fffffff;
	if (abs > 0x7f800000) return 0x7fff;
	if (abs >= 0x477ff000) return sign | 0x7c00;
	if (abs < 0x38800000) return sign | (bits(from_bits(abs) + 0.5f) - bits(0.5f));
	abs += 0xfff + (abs >> 13 & 1);
	return sign | (abs - ((127 - 15) << 23)) >> 13;
}

DEVICE float from_bf16(u16 h) {
	u32 b = (u32)h << 16;
	return from_bits((b & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : b);
}

DEVICE u16 to_bf16(float f) {
	u32 b = bits(f);
	if ((b & 0x7fffffff) > 0x7f800000) return 0x7fff;
	return (b + 0x7fff + (b >> 16 & 1)) >> 16;
}

DEVICE u8 to_u8(float f) {
	if (!(f > 0)) return 0;
	if (f >= 255) return 255;
	return bits(f + 0x1p23f);
}

// Each element type: how it is stored, and the way to float and back.
struct U8 {
	typedef u8 T;
	static INLINE float load(u8 v) { return v; }
	static INLINE u8 store(float f) { return to_u8(f); }
};
struct F16 {
	typedef u16 T;
	static INLINE float load(u16 v) { return from_f16(v); }
	static INLINE u16 store(float f) { return to_f16(f); }
};
struct BF16 {
	typedef u16 T;
	static INLINE float load(u16 v) { return from_bf16(v); }
	static INLINE u16 store(float f) { return to_bf16(f); }
};
struct F32 {
	typedef float T;
	static INLINE float load(float v) { return v; }
	static INLINE float store(float f) { return f; }
};
