// uint8 to floating point with mean and deviation per channel: see normalize.go.
#include "element.cuh"

enum { max_channels = 8 };

struct Coefficients {
	float scale[max_channels], bias[max_channels];
};

// A vector of four results is stored at once.
template <class E> struct Vec4;
template <> struct Vec4<F32> { typedef f32x4 T; };
template <> struct Vec4<F16> { typedef u16x4 T; };
template <> struct Vec4<BF16> { typedef u16x4 T; };

DEVICE float normalize(const Coefficients &k, u32 c, u8 v) { return (float)v * k.scale[c] + k.bias[c]; }

// Four bytes a thread, where both sides are aligned for it: one at a time else.
template <class E>
DEVICE void normalize_nhwc(typename E::T *out, const u8 *in, i64 n, u32 channels, const Coefficients &k) {
	i64 wide = aligned(in, 4) && aligned(out, 4 * sizeof(typename E::T)) ? n / 4 : 0;
	i64 i = first(), step = stride();
	u32 c = (u32)(i * 4 % channels), c_step = (u32)(step * 4 % channels);
	for (; i < wide; i += step) {
		u8x4 v = ((const u8x4 *)in)[i];
		typename Vec4<E>::T r;
		u32 d = c;
#pragma unroll
		for (int j = 0; j < 4; j++) {
			r[j] = E::store(normalize(k, d, v[j]));
			if (++d == channels) d = 0;
		}
		((typename Vec4<E>::T *)out)[i] = r;
		c += c_step;
		if (c >= channels) c -= channels;
	}
	for (i64 j = wide * 4 + first(); j < n; j += step) out[j] = E::store(normalize(k, (u32)(j % channels), in[j]));
}

// A thread takes a pixel: its channels are read together, and each plane is
// written in order.
template <class E>
DEVICE void normalize_nhwc_nchw(typename E::T *out, const u8 *in, i64 n, i64 pixels, u32 channels, const Coefficients &k) {
	i64 sample = pixels * channels;
	for (i64 start = first_row() * sample; start < n; start += row_stride() * sample)
		for (i64 p = first(); p < pixels; p += stride())
			for (u32 c = 0; c < channels; c++)
				out[start + c * pixels + p] = E::store(normalize(k, c, in[start + p * channels + c]));
}

template <class E>
DEVICE void normalize_nchw(typename E::T *out, const u8 *in, i64 n, i64 pixels, u32 channels, const Coefficients &k) {
	for (i64 plane = first_row(); plane * pixels < n; plane += row_stride()) {
		u32 c = (u32)(plane % channels);
		for (i64 p = first(); p < pixels; p += stride())
			out[plane * pixels + p] = E::store(normalize(k, c, in[plane * pixels + p]));
	}
}

#define COEFFICIENT_PARAMETERS                                                       \
	float s0, float s1, float s2, float s3, float s4, float s5, float s6, float s7, \
	float b0, float b1, float b2, float b3, float b4, float b5, float b6, float b7

// Which channel a thread needs is known at run time only, so the coefficients lie
// in shared memory: registers can't be indexed.
#define SHARE_COEFFICIENTS(k)                                                       \
	SHARED Coefficients k;                                                          \
	if (__nvvm_read_ptx_sreg_tid_x() == 0)                                          \
		k = Coefficients{{s0, s1, s2, s3, s4, s5, s6, s7}, {b0, b1, b2, b3, b4, b5, b6, b7}}; \
	__nvvm_bar_sync(0);

#define NORMALIZE(suffix, E)                                                        \
	KERNEL void normalize_nhwc_##suffix(E::T *__restrict__ out, const u8 *__restrict__ in, i64 n, i64 pixels, u32 channels, COEFFICIENT_PARAMETERS) { \
		SHARE_COEFFICIENTS(k)                                                       \
		normalize_nhwc<E>(out, in, n, channels, k);                                 \
	}                                                                               \
	KERNEL void normalize_nhwc_nchw_##suffix(E::T *__restrict__ out, const u8 *__restrict__ in, i64 n, i64 pixels, u32 channels, COEFFICIENT_PARAMETERS) { \
		SHARE_COEFFICIENTS(k)                                                       \
		normalize_nhwc_nchw<E>(out, in, n, pixels, channels, k);                    \
	}                                                                               \
	KERNEL void normalize_nchw_##suffix(E::T *__restrict__ out, const u8 *__restrict__ in, i64 n, i64 pixels, u32 channels, COEFFICIENT_PARAMETERS) { \
		SHARE_COEFFICIENTS(k)                                                       \
		normalize_nchw<E>(out, in, n, pixels, channels, k);                         \
	}

NORMALIZE(f32, F32)
NORMALIZE(f16, F16)
NORMALIZE(bf16, BF16)
