// The network's operations for CUDA, the counterparts of the Go functions in
// matmul.go, bias.go, loss.go, adam.go and parts.go. Every sum has a fixed order, though in
// matmul and cross_entropy not the CPU's. No kernel has few threads: a step of a small
// batch is many short kernels, and takes as long as the slowest thread of each.

#define KERNEL extern "C" __attribute__((global))
#define DEVICE static __attribute__((device)) inline
#define SHARED __attribute__((shared))

enum { threads = 256 };

// No launch has more threads in a block: the compiler leaves registers for as many.
#define LANES(n) __attribute__((launch_bounds(n)))

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int global_thread() { return __nvvm_read_ptx_sreg_ctaid_x() * threads + thread(); }

// shuffle is x of the thread of this warp whose number differs in the bits of mask.
DEVICE int shuffle_int(int x, int mask) { return __nvvm_shfl_sync_bfly_i32(-1, x, mask, 31); }
DEVICE float shuffle(float x, int mask) { return __nvvm_shfl_sync_bfly_f32(-1, x, mask, 31); }

// In matmul a block computes a square of out, and its threads, in groups, a part of each
// sum: even a small product then has enough threads for the whole GPU. They take tiles of a
// and of b of this depth after each other, of which every group has the same four products.
enum { tile = 16, depth = 128, group = 16, lanes = 512, warps = lanes / 32 };

// What a thread loads of a tile.
enum { loads = tile * depth / lanes };

// Rows of a tile lie this far apart: aligned for vectors, and eight of them in other banks.
enum { row_floats = depth + 4 };

typedef float vector __attribute__((ext_vector_type(4), may_alias));

// An operand of a product is rows×k; if k_runs, what is added up lies side by side in
// memory. The place in a tile that a thread loads runs along memory too.
template <bool k_runs> DEVICE int tile_row(int t) { return k_runs ? t / depth : t % tile; }
template <bool k_runs> DEVICE int tile_k(int t) { return k_runs ? t % depth : t / tile; }

// matmul_load loads a thread's part of the tile that begins at row and start.
template <bool k_runs>
DEVICE void matmul_load(float *v, const float *x, int rows, int k, int row, int start) {
#pragma unroll
	for (int l = 0; l < loads; l++) {
		int t = thread() + l * lanes, i = row + tile_row<k_runs>(t), p = start + tile_k<k_runs>(t);
		v[l] = i >= rows || p >= k ? 0 : k_runs ? x[i * k + p] : x[p * rows + i];
	}
}

template <bool k_runs>
DEVICE void matmul_store(float *tile_of, const float *v) {
#pragma unroll
	for (int l = 0; l < loads; l++) {
		int t = thread() + l * lanes;
		tile_of[tile_row<k_runs>(t) * row_floats + tile_k<k_runs>(t)] = v[l];
	}
}

template <bool transpose_a, bool transpose_b>
DEVICE void matmul(float *out, const float *a, const float *b, int m, int n, int k) {
	SHARED __attribute__((aligned(16))) float shared[2 * tile * row_floats];
	float *as = shared, *bs = shared + tile * row_floats;
	int row = __nvvm_read_ptx_sreg_ctaid_y() * tile, col = __nvvm_read_ptx_sreg_ctaid_x() * tile;
	// A thread has the rows y, y+4, … and the columns x, x+4, … of the square.
	int x = thread() % 4, y = thread() / 4 % 4, first = thread() / group * 4;
	float sum[4][4] = {};
	// The next tiles are on their way while these are worked on.
	float av[loads], bv[loads];
	matmul_load<!transpose_a>(av, a, m, k, row, 0);
	matmul_load<transpose_b>(bv, b, n, k, col, 0);
	for (int start = 0; start < k; start += depth) {
		matmul_store<!transpose_a>(as, av);
		matmul_store<transpose_b>(bs, bv);
		__nvvm_bar_sync(0);
		if (start + depth < k) {
			matmul_load<!transpose_a>(av, a, m, k, row, start + depth);
			matmul_load<transpose_b>(bv, b, n, k, col, start + depth);
		}
		vector ra[4], rb[4];
#pragma unroll
		for (int i = 0; i < 4; i++) {
			ra[i] = *(const vector *)(as + (y + 4 * i) * row_floats + first);
			rb[i] = *(const vector *)(bs + (x + 4 * i) * row_floats + first);
		}
#pragma unroll
		for (int p = 0; p < 4; p++)
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++) sum[i][j] += ra[i][p] * rb[j][p];
		__nvvm_bar_sync(0);
	}
	// The two groups of a warp are added first, then the warps in their order.
	float *parts = shared; // [warps][tile][tile]
#pragma unroll
	for (int i = 0; i < 4; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			float both = sum[i][j] + shuffle(sum[i][j], group);
			if (thread() % 32 < group) parts[thread() / 32 * tile * tile + (y + 4 * i) * tile + x + 4 * j] = both;
		}
	__nvvm_bar_sync(0);
	int r = row + thread() / tile, c = col + thread() % tile;
	if (thread() >= tile * tile || r >= m || c >= n) return;
	float total = parts[thread()];
#pragma unroll
	for (int w = 1; w < warps; w++) total += parts[w * tile * tile + thread()];
	out[r * n + c] = total;
}

KERNEL LANES(lanes) void matmul(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<false, false>(out, a, b, m, n, k);
}
KERNEL LANES(lanes) void matmul_ta(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<true, false>(out, a, b, m, n, k);
}
KERNEL LANES(lanes) void matmul_tb(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<false, true>(out, a, b, m, n, k);
}

KERNEL void bias(float *x, const float *__restrict__ bias, int n, int width) {
	int i = global_thread();
	if (i < n * width) x[i] += bias[i % width];
}

KERNEL void bias_relu(float *x, const float *__restrict__ bias, int n, int width) {
	int i = global_thread();
	if (i >= n * width) return;
	float v = x[i] + bias[i % width];
	x[i] = v < 0 ? 0 : v; // a NaN stays, to be seen in the loss
}

KERNEL void relu_backward(float *grad, const float *__restrict__ activation, int count) {
	int i = global_thread();
	if (i < count && activation[i] == 0) grad[i] = 0;
}

// A block sums up 32 columns. A thread takes every 32nd row of one of them, and the first
// warp adds what the others have, in their order.
KERNEL LANES(1024) void column_sum(float *__restrict__ out, const float *__restrict__ x, int n, int width) {
	SHARED float parts[32][32];
	int lane = thread() % 32, warp = thread() / 32, j = __nvvm_read_ptx_sreg_ctaid_x() * 32 + lane;
	float sum = 0;
	if (j < width) {
#pragma unroll 4
		for (int i = warp; i < n; i += 32) sum += x[i * width + j];
	}
	parts[warp][lane] = sum;
	__nvvm_bar_sync(0);
	if (warp > 0 || j >= width) return;
#pragma unroll
	for (int w = 1; w < 32; w++) sum += parts[w][lane];
	out[j] = sum;
}

DEVICE float exp(float x) { return __nvvm_ex2_approx_f(x * 1.44269504f); }
DEVICE float log(float x) { return __nvvm_lg2_approx_f(x) * 0.693147181f; }

// cross_entropy_row is one row, which a warp works on; n scales the gradient. Every thread
// of the warp returns the loss.
DEVICE float cross_entropy_row(float *grad, const float *logits, const float *target, int n, int classes, unsigned *correct) {
	int lane = thread() % 32, best = 0, label = -1;
	float top = logits[0];
	for (int j = lane; j < classes; j += 32) {
		if (logits[j] > top) top = logits[j], best = j;
		if (target[j] != 0) label = j;
	}
#pragma unroll
	for (int mask = 16; mask > 0; mask /= 2) {
		float other_top = shuffle(top, mask);
		int other_best = shuffle_int(best, mask), other_label = shuffle_int(label, mask);
		if (other_top > top || (other_top == top && other_best < best)) top = other_top, best = other_best;
		if (other_label > label) label = other_label;
	}
	if (label < 0) {
		for (int j = lane; j < classes; j += 32) grad[j] = 0;
		return 0;
	}
	float sum = 0;
	for (int j = lane; j < classes; j += 32) sum += exp(logits[j] - top);
#pragma unroll
	for (int mask = 16; mask > 0; mask /= 2) sum += shuffle(sum, mask);
	float scale = 1 / (sum * (float)n);
	for (int j = lane; j < classes; j += 32) grad[j] = exp(logits[j] - top) * scale - target[j] / (float)n;
	*correct += best == label;
	return log(sum) + top - logits[label];
}

enum { rows_at_once = 32 };

// One block; warp w takes rows w, w+32, … and the first thread adds the warps' sums.
DEVICE void cross_entropy_all(float *__restrict__ loss, unsigned *__restrict__ correct, float *__restrict__ grad,
                              const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes) {
	SHARED double sums[rows_at_once];
	SHARED unsigned counts[rows_at_once];
	int warp = thread() / 32;
	double sum = 0;
	unsigned count = 0;
	for (int i = warp; i < n; i += rows_at_once)
		sum += cross_entropy_row(grad + i * classes, logits + i * classes, targets + i * classes, n, classes, &count);
	if (thread() % 32 == 0) sums[warp] = sum, counts[warp] = count;
	__nvvm_bar_sync(0);
	if (thread() > 0) return;
#pragma unroll
	for (int w = 1; w < rows_at_once; w++) sum += sums[w], count += counts[w];
	*loss = (float)(sum / n), *correct = count;
}

KERNEL LANES(rows_at_once * 32) void cross_entropy(float *__restrict__ loss, unsigned *__restrict__ correct, float *__restrict__ grad,
                     const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes) {
	cross_entropy_all(loss, correct, grad, logits, targets, n, classes);
}

DEVICE void adam_one(float *params, float *moment1, float *moment2, float g, float rate, float epsilon) {
	float m = *moment1 + (float)(1 - 0.9) * (g - *moment1);
	float v = *moment2 + (float)(1 - 0.999) * (g * g - *moment2);
	*moment1 = m, *moment2 = v;
	*params -= rate * m / (__nvvm_sqrt_rn_f(v) + epsilon);
}

KERNEL void adam(float *__restrict__ params, float *__restrict__ moment1, float *__restrict__ moment2,
            const float *__restrict__ grads, int count, float rate, float epsilon) {
	int i = global_thread();
	if (i < count) adam_one(params + i, moment1 + i, moment2 + i, grads[i], rate, epsilon);
}

// The parts lie one behind the other and are added in that order.
KERNEL void mean(float *__restrict__ out, const float *__restrict__ parts, int n, int count) {
	int i = global_thread();
	if (i >= count) return;
	float sum = parts[i];
	for (int p = 1; p < n; p++) sum += parts[(long)p * count + i];
	out[i] = sum / (float)n;
}

// What follows are the kernels of a step that is captured: what changes from step to step
// they read in memory.

// Scalars in step.go.
struct scalars {
	float rate, epsilon;
	unsigned place;
};

KERNEL LANES(rows_at_once * 32) void cross_entropy_at(float *__restrict__ losses, unsigned *__restrict__ corrects, float *__restrict__ grad,
                        const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes,
                        const scalars *__restrict__ s) {
	cross_entropy_all(losses + s->place, corrects + s->place, grad, logits, targets, n, classes);
}

KERNEL void adam_at(float *__restrict__ params, float *__restrict__ moment1, float *__restrict__ moment2,
               const float *__restrict__ grads, int count, const scalars *__restrict__ s) {
	int i = global_thread();
	if (i < count) adam_one(params + i, moment1 + i, moment2 + i, grads[i], s->rate, s->epsilon);
}
