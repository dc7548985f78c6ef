// The filter's operations for CUDA, the counterparts of the Go functions in blur.go
// and colour.go.

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device, always_inline)) inline

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef long long i64;

enum { channels = 3, max_radius = 8 };

// Blocks of one row of the grid share a row of the picture.
DEVICE i32 first() { return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x(); }
DEVICE i32 stride() { return __nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE i32 first_row() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE i32 row_stride() { return __nvvm_read_ptx_sreg_nctaid_y(); }

DEVICE i32 least(i32 a, i32 b) { return a < b ? a : b; }
DEVICE i32 most(i32 a, i32 b) { return a > b ? a : b; }

// The weights are parameters: unrolled, the loop reads each without an index, and
// all of them stay out of memory.
#define WEIGHTS u32 w0, u32 w1, u32 w2, u32 w3, u32 w4, u32 w5, u32 w6, u32 w7, u32 w8
#define WEIGHTS_IN(w) const u32 w[max_radius + 1] = {w0, w1, w2, w3, w4, w5, w6, w7, w8}

// The weighted sum about place at of 0 to last, whose elements are step apart. Beyond
// either end the picture goes on as it ended.
template <class T>
DEVICE u32 weigh(const T *in, i32 at, i32 last, i64 step, const u32 (&w)[max_radius + 1]) {
	u32 sum = w[0] * in[at * step];
#pragma unroll
	for (i32 k = 1; k <= max_radius; k++) sum += w[k] * ((u32)in[most(at - k, 0) * step] + in[least(at + k, last) * step]);
	return sum;
}

KERNEL blur_horizontal(u16 *__restrict__ out, const u8 *__restrict__ in, i32 width, i32 height, WEIGHTS) {
	WEIGHTS_IN(w);
	i32 row = width * channels;
	for (i32 y = first_row(); y < height; y += row_stride())
		for (i32 i = first(); i < row; i += stride()) {
			i64 start = (i64)y * row;
			i32 x = i / channels, channel = i - x * channels;
			out[start + i] = (weigh(in + start + channel, x, width - 1, channels, w) + (1u << 7)) >> 8;
		}
}

KERNEL blur_vertical(u8 *__restrict__ out, const u16 *__restrict__ in, i32 width, i32 height, WEIGHTS) {
	WEIGHTS_IN(w);
	i32 row = width * channels;
	for (i32 y = first_row(); y < height; y += row_stride())
		for (i32 i = first(); i < row; i += stride())
			out[(i64)y * row + i] = (weigh(in + i, y, height - 1, row, w) + (1u << 23)) >> 24;
}

KERNEL ycbcr(u8 *__restrict__ luma, u8 *__restrict__ blue, u8 *__restrict__ red, const u8 *__restrict__ in,
             const u8 *__restrict__ gamma, i32 width, i32 height) {
	for (i32 y = first_row(); y < height; y += row_stride())
		for (i32 x = first(); x < width; x += stride()) {
			i64 i = (i64)y * width + x;
			i32 r = gamma[in[channels * i]], g = gamma[in[channels * i + 1]], b = gamma[in[channels * i + 2]];
			luma[i] = (19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16;
			blue[i] = least((-11056 * r - 21712 * g + 32768 * b + (257 << 15)) >> 16, 255);
			red[i] = least((32768 * r - 27440 * g - 5328 * b + (257 << 15)) >> 16, 255);
		}
}
