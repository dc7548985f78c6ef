// Random crop and flip: see crop.go.
#include "random.cuh"

DEVICE u32 below(u64 r, u64 n) { return (u32)__nvvm_mulhi_ull(r, n); }

// Rows are images; a thread takes one byte at a time, so that neighbours write
// neighbours.
KERNEL void crop(u8 *__restrict__ out, const u8 *__restrict__ in, i64 n, i32 height, i32 width, i32 out_height, i32 out_width,
                 i32 pixel_bytes, i32 pad, u32 centre, u64 flip_below, u64 seed, u64 epoch, u64 position) {
	const u64 golden = 0x9e3779b97f4a7c15ull;
	i32 tops = height + 2 * pad - out_height, lefts = width + 2 * pad - out_width;
	i32 in_row = width * pixel_bytes, out_row = out_width * pixel_bytes;
	i64 in_image = (i64)in_row * height, out_image = (i64)out_row * out_height;
	for (i64 i = first_row(); i < n; i += row_stride()) {
		i32 top = tops / 2, left = lefts / 2;
		bool flip = false;
		if (!centre) {
			u64 r = mix(seed + mix(epoch + mix(position + i + golden) + golden) + golden);
			top = below(r, (u64)tops + 1);
			left = below(mix(r + golden), (u64)lefts + 1);
			flip = mix(r + golden + golden) >> 32 < flip_below;
		}
		for (i64 b = first(); b < out_image; b += stride()) {
			i32 y = (i32)(b / out_row), in_row_byte = (i32)(b - (i64)y * out_row);
			i32 x = in_row_byte / pixel_bytes, byte = in_row_byte - x * pixel_bytes;
			if (flip) x = out_width - 1 - x;
			i32 in_y = top + y - pad, in_x = left + x - pad;
			bool inside = in_y >= 0 && in_y < height && in_x >= 0 && in_x < width;
			out[i * out_image + b] = inside ? in[i * in_image + (i64)in_y * in_row + in_x * pixel_bytes + byte] : 0;
		}
	}
}
