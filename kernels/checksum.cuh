// Order-sensitive checksum: see checksum.go.
#include "random.cuh"

DEVICE u64 scramble(u64 word, u64 place) { return mix(word ^ place * 0x9e3779b97f4a7c15ull); }

DEVICE u64 load_word(const u8 *in, i64 bytes) {
	u64 word = 0;
	for (i64 j = 0; j < bytes; j++) word |= (u64)in[j] << 8 * j;
	return word;
}

// Addition modulo 2^64 has no order, so each block adds its part when it is done.
KERNEL void checksum(u64 *out, const u8 *__restrict__ in, i64 n) {
	u64 sum = 0;
	i64 words = n / 8;
	if (aligned(in, 8)) {
		for (i64 i = first(); i < words; i += stride()) sum += scramble(((const u64 *)in)[i], i + 1);
	} else {
		for (i64 i = first(); i < words; i += stride()) sum += scramble(load_word(in + i * 8, 8), i + 1);
	}
	i64 tail = n - words * 8;
	if (first() == 0) {
		sum += scramble(n, 0);
		if (tail > 0) sum += scramble(load_word(in + words * 8, tail), words + 1);
	}
	SHARED u64 total;
	u32 thread = __nvvm_read_ptx_sreg_tid_x();
	if (thread == 0) total = 0;
	__nvvm_bar_sync(0);
	__atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
	__nvvm_bar_sync(0);
	if (thread == 0) __atomic_fetch_add(out, total, __ATOMIC_RELAXED);
}
