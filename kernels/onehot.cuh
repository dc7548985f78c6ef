// Labels as one-hot rows: see onehot.go.
#include "cuda.cuh"

template <class L>
DEVICE void one_hot(float *out, const L *labels, i64 n, u32 classes) {
	for (i64 i = first(); i < n; i += stride()) {
		i64 row = i / classes;
		out[i] = (i64)labels[row] == i - row * classes ? 1.0f : 0.0f;
	}
}

KERNEL void one_hot_u8(float *__restrict__ out, const u8 *__restrict__ labels, i64 n, u32 classes) { one_hot(out, labels, n, classes); }
KERNEL void one_hot_i32(float *__restrict__ out, const i32 *__restrict__ labels, i64 n, u32 classes) { one_hot(out, labels, n, classes); }
KERNEL void one_hot_i64(float *__restrict__ out, const i64 *__restrict__ labels, i64 n, u32 classes) { one_hot(out, labels, n, classes); }
