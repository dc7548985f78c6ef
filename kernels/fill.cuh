// One value everywhere: see fill.go.
#include "cuda.cuh"

template <class T>
DEVICE void fill(T *out, i64 n, T pattern) {
	for (i64 i = first(); i < n; i += stride()) out[i] = pattern;
}

KERNEL void fill_16(u16 *out, i64 n, u32 pattern) { fill(out, n, (u16)pattern); }
KERNEL void fill_32(u32 *out, i64 n, u32 pattern) { fill(out, n, pattern); }
