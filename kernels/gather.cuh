// Rows by index: see gather.go.
#include "cuda.cuh"

// The rows of out lie together, so the work is cut into pieces of out of this many
// bytes, wherever rows begin and end; a warp takes a piece at a time. Long rows
// and short ones then keep every warp busy.
enum { piece_bytes = 16384, unroll = 4 };

template <class I>
struct Gather {
	const u8 *table;
	const I *index;
	i64 row, count;

	// load is the T at byte `at` of out's row i and on; `at` may lie in later rows,
	// by a piece at most.
	template <class T>
	INLINE T load(i64 i, i64 at) const {
		if (row <= piece_bytes) {
			u32 rows = (u32)at / (u32)row; // 32 bits: many times faster than 64
			i += rows, at -= rows * (u32)row;
		} else if (at >= row) {
			i++, at -= row;
		}
		u64 source = (u64)(i64)index[i];
		return source < (u64)count ? *(const T *)(table + source * row + at) : T(0);
	}

	// copy fills out by units of T. Four loads are under way in each thread before
	// the first is stored: reads over the bus take microseconds, and only many at
	// once fill it.
	template <class T>
	INLINE void copy(u8 *out, i64 bytes) const {
		u32 lane = __nvvm_read_ptx_sreg_tid_x() & 31;
		for (i64 start = first() / 32 * piece_bytes; start < bytes; start += stride() / 32 * piece_bytes) {
			i64 i = start / row, at = start - i * row;
			u32 units = (u32)((bytes - start < piece_bytes ? bytes - start : piece_bytes) / sizeof(T));
			for (u32 u = lane; u < units; u += 32 * unroll) {
				T v[unroll];
#pragma unroll
				for (int k = 0; k < unroll; k++)
					if (u + 32 * k < units) v[k] = load<T>(i, at + (u + 32 * k) * sizeof(T));
#pragma unroll
				for (int k = 0; k < unroll; k++)
					if (u + 32 * k < units) ((T *)(out + start))[u + 32 * k] = v[k];
			}
		}
	}

	INLINE void run(u8 *out, i64 n) const {
		u64 all = (u64)out | (u64)table | (u64)row;
		if ((all & 15) == 0) copy<u32x4>(out, n * row);
		else if ((all & 3) == 0) copy<u32>(out, n * row);
		else copy<u8>(out, n * row);
	}
};

KERNEL void gather_i32(u8 *__restrict__ out, const u8 *__restrict__ table, const i32 *__restrict__ index, i64 n, i64 row, i64 count) {
	Gather<i32>{table, index, row, count}.run(out, n);
}
KERNEL void gather_i64(u8 *__restrict__ out, const u8 *__restrict__ table, const i64 *__restrict__ index, i64 n, i64 row, i64 count) {
	Gather<i64>{table, index, row, count}.run(out, n);
}
