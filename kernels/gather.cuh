// Rows by index: see gather.go.
#include "cuda.cuh"

// copy_row has the 32 threads of a warp copy n units of T. Four loads are under
// way in each thread before the first is stored: reads over the bus take
// microseconds, and only many at once fill it.
template <class T>
DEVICE void copy_row(u8 *out, const u8 *in, i64 n, u32 lane) {
	T *to = (T *)out;
	const T *from = (const T *)in;
	i64 j = lane;
	for (; j + 96 < n; j += 128) {
		T a = from[j], b = from[j + 32], c = from[j + 64], d = from[j + 96];
		to[j] = a, to[j + 32] = b, to[j + 64] = c, to[j + 96] = d;
	}
	for (; j < n; j += 32) to[j] = from[j];
}

DEVICE void zero_row(u8 *out, i64 n, u32 lane) {
	for (i64 j = lane; j < n; j += 32) out[j] = 0;
}

// A long row is cut into pieces, so that a batch of few rows keeps every warp
// busy; a warp takes a piece at a time.
template <class I>
DEVICE void gather(u8 *out, const u8 *table, const I *index, i64 n, i64 row, i64 count) {
	const i64 piece = 16384;
	u32 lane = __nvvm_read_ptx_sreg_tid_x() & 31;
	i64 warp = first() / 32, warps = stride() / 32, pieces = (row + piece - 1) / piece;
	for (i64 w = warp; w < n * pieces; w += warps) {
		i64 i = w / pieces, at = (w - i * pieces) * piece, bytes = row - at < piece ? row - at : piece;
		u64 source = (u64)(i64)index[i];
		u8 *to = out + i * row + at;
		if (source >= (u64)count) {
			zero_row(to, bytes, lane);
			continue;
		}
		const u8 *from = table + source * row + at;
		u64 both = (u64)to | (u64)from | (u64)bytes;
		if ((both & 15) == 0) copy_row<u32x4>(to, from, bytes / 16, lane);
		else if ((both & 3) == 0) copy_row<u32>(to, from, bytes / 4, lane);
		else copy_row<u8>(to, from, bytes, lane);
	}
}

KERNEL void gather_i32(u8 *__restrict__ out, const u8 *__restrict__ table, const i32 *__restrict__ index, i64 n, i64 row, i64 count) {
	gather(out, table, index, n, row, count);
}
KERNEL void gather_i64(u8 *__restrict__ out, const u8 *__restrict__ table, const i64 *__restrict__ index, i64 n, i64 row, i64 count) {
	gather(out, table, index, n, row, count);
}
