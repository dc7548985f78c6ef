// Conversion between element types: see convert.go.
#include "element.cuh"

template <class To, class From>
DEVICE void convert(typename To::T *out, const typename From::T *in, i64 n) {
	for (i64 i = first(); i < n; i += stride()) out[i] = To::store(From::load(in[i]));
}

#define CONVERT(name, From, To) \
	KERNEL void convert_##name(To::T *__restrict__ out, const From::T *__restrict__ in, i64 n) { convert<To, From>(out, in, n); }

CONVERT(u8_f16, U8, F16)
CONVERT(u8_bf16, U8, BF16)
CONVERT(u8_f32, U8, F32)
CONVERT(f16_u8, F16, U8)
CONVERT(f16_bf16, F16, BF16)
CONVERT(f16_f32, F16, F32)
CONVERT(bf16_u8, BF16, U8)
CONVERT(bf16_f16, BF16, F16)
CONVERT(bf16_f32, BF16, F32)
CONVERT(f32_u8, F32, U8)
CONVERT(f32_f16, F32, F16)
CONVERT(f32_bf16, F32, BF16)
