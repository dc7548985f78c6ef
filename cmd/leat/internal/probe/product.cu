// The product of two square matrices, row-major, whose side is a multiple of the
// tile's: the counterpart of multiply in product.go, in the same order of sums, so
// that both agree to the last bit.

#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))

enum { tile = 16 };

KERNEL product(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int n) {
	SHARED float as[tile][tile], bs[tile][tile];
	int x = __nvvm_read_ptx_sreg_tid_x(), y = __nvvm_read_ptx_sreg_tid_y();
	int row = __nvvm_read_ptx_sreg_ctaid_y() * tile + y, col = __nvvm_read_ptx_sreg_ctaid_x() * tile + x;
	float sum = 0;
	for (int start = 0; start < n; start += tile) {
		as[y][x] = a[row * n + start + x];
		bs[y][x] = b[(start + y) * n + col];
		__nvvm_bar_sync(0);
#pragma unroll
		for (int p = 0; p < tile; p++) sum += as[y][p] * bs[p][x];
		__nvvm_bar_sync(0);
	}
	out[row * n + col] = sum;
}
