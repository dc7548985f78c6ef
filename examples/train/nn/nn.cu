// The network's operations for CUDA, the counterparts of the Go functions in
// matmul.go, bias.go, loss.go, adam.go and parts.go. Every sum has a fixed order, though in
// matmul and cross_entropy not the CPU's. No kernel has few threads: a step of a small
// batch is many short kernels, and takes as long as the slowest thread of each.

#define KERNEL extern "C" __attribute__((global))
#define INLINE __attribute__((device)) inline
#define DEVICE static INLINE
#define SHARED __attribute__((shared))

enum { threads = 256 };

// No launch has more threads in a block: the compiler leaves registers for as many.
#define LANES(n) __attribute__((launch_bounds(n)))

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int global_thread() { return __nvvm_read_ptx_sreg_ctaid_x() * threads + thread(); }

// shuffle is x of the thread of this warp whose number differs in the bits of mask.
DEVICE int shuffle(int x, int mask) { return __nvvm_shfl_sync_bfly_i32(-1, x, mask, 31); }
DEVICE float shuffle(float x, int mask) { return __nvvm_shfl_sync_bfly_f32(-1, x, mask, 31); }
DEVICE double shuffle(double x, int mask) {
	struct halves { int low, high; } h = __builtin_bit_cast(halves, x);
	h.low = shuffle(h.low, mask), h.high = shuffle(h.high, mask);
	return __builtin_bit_cast(double, h);
}

// In matmul a block computes a piece of out, and its threads, in groups, a part of each
// sum: even a small product then has enough threads for the whole GPU. They take tiles of a
// and of b after each other, of which a group has four products beside each other in every
// round.
enum { tile_cols = 16, group = 16, lanes = 512, warps = lanes / 32 };
enum { round = lanes / group * 4 };

typedef float vector __attribute__((ext_vector_type(4), may_alias));

// An operand of a product is size×k, of which a tile has part; if k_runs, what is added up
// lies side by side in memory. The places of a tile that a thread loads run along memory too.
template <int part, int depth, bool k_runs>
struct operand {
	enum { loads = part * depth / lanes };
	// Rows of a tile lie this far apart: aligned for vectors, and eight of them in other banks.
	enum { stride = depth + 4 };
	float v[loads];

	INLINE static int row(int t) { return k_runs ? t / depth : t % part; }
	INLINE static int column(int t) { return k_runs ? t % depth : t / part; }

	INLINE void load(const float *x, int size, int k, int first, int start) {
#pragma unroll
		for (int l = 0; l < loads; l++) {
			int t = thread() + l * lanes, i = first + row(t), p = start + column(t);
			v[l] = i >= size || p >= k ? 0 : k_runs ? x[i * k + p] : x[p * size + i];
		}
	}
	INLINE void store(float *tile) {
#pragma unroll
		for (int l = 0; l < loads; l++) {
			int t = thread() + l * lanes;
			tile[row(t) * stride + column(t)] = v[l];
		}
	}
};

// A piece has tile_rows rows, and tiles this depth.
template <int tile_rows, int depth, bool transpose_a, bool transpose_b>
DEVICE void matmul(float *out, const float *a, const float *b, int m, int n, int k) {
	typedef operand<tile_rows, depth, !transpose_a> left;
	typedef operand<tile_cols, depth, transpose_b> right;
	enum { stride = left::stride, rows = tile_rows / 4 };
	SHARED __attribute__((aligned(16))) float shared[(tile_rows + tile_cols) * stride];
	float *as = shared, *bs = shared + tile_rows * stride;
	int row = __nvvm_read_ptx_sreg_ctaid_y() * tile_rows, col = __nvvm_read_ptx_sreg_ctaid_x() * tile_cols;
	// A thread has the rows y, y+4, … and the columns x, x+4, … of the piece.
	int x = thread() % 4, y = thread() / 4 % 4, first = thread() / group * 4;
	float sum[rows][4] = {};
	// The next tiles are on their way while these are worked on.
	left at;
	right bt;
	at.load(a, m, k, row, 0), bt.load(b, n, k, col, 0);
	for (int start = 0; start < k; start += depth) {
		at.store(as), bt.store(bs);
		__nvvm_bar_sync(0);
		if (start + depth < k) at.load(a, m, k, row, start + depth), bt.load(b, n, k, col, start + depth);
#pragma unroll
		for (int from = 0; from < depth; from += round) {
			if (start + from >= k) break;
			vector ra[rows], rb[4];
#pragma unroll
			for (int i = 0; i < rows; i++) ra[i] = *(const vector *)(as + (y + 4 * i) * stride + from + first);
#pragma unroll
			for (int j = 0; j < 4; j++) rb[j] = *(const vector *)(bs + (x + 4 * j) * stride + from + first);
#pragma unroll
			for (int p = 0; p < 4; p++)
#pragma unroll
				for (int i = 0; i < rows; i++)
#pragma unroll
					for (int j = 0; j < 4; j++) sum[i][j] += ra[i][p] * rb[j][p];
		}
		__nvvm_bar_sync(0);
	}
	// The two groups of a warp are added first, then the warps in their order.
	enum { piece = tile_rows * tile_cols };
	float *parts = shared; // [warps][piece]
#pragma unroll
	for (int i = 0; i < rows; i++)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			float both = sum[i][j] + shuffle(sum[i][j], group);
			if (thread() % 32 < group) parts[thread() / 32 * piece + (y + 4 * i) * tile_cols + x + 4 * j] = both;
		}
	__nvvm_bar_sync(0);
	int r = row + thread() / tile_cols, c = col + thread() % tile_cols;
	if (thread() >= piece || r >= m || c >= n) return;
	float total = parts[thread()];
#pragma unroll
	for (int w = 1; w < warps; w++) total += parts[w * piece + thread()];
	out[r * n + c] = total;
}

// matMul has the rows too. With a transposed the sums are over a batch, and many.
KERNEL LANES(lanes) void matmul(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<8, 256, false, false>(out, a, b, m, n, k);
}
KERNEL LANES(lanes) void matmul_ta(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<16, 128, true, false>(out, a, b, m, n, k);
}
KERNEL LANES(lanes) void matmul_tb(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<8, 256, false, true>(out, a, b, m, n, k);
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

// Eight threads work on a row of logits, and a block on so many rows at a time.
enum { row_lanes = 8, rows_at_once = 1024 / row_lanes };

// cross_entropy_row is one row; n scales the gradient. Each of its threads returns the loss.
// All threads of the warp call it, since they shuffle: without write it is for that alone.
DEVICE float cross_entropy_row(float *grad, const float *logits, const float *target, int n, int classes, bool write, unsigned *correct) {
	int lane = thread() % row_lanes, best = 0, label = -1;
	float top = logits[0];
	for (int j = lane; j < classes; j += row_lanes) {
		if (logits[j] > top) top = logits[j], best = j;
		if (target[j] != 0) label = j;
	}
#pragma unroll
	for (int mask = row_lanes / 2; mask > 0; mask /= 2) {
		float other_top = shuffle(top, mask);
		int other_best = shuffle(best, mask), other_label = shuffle(label, mask);
		if (other_top > top || (other_top == top && other_best < best)) top = other_top, best = other_best;
		if (other_label > label) label = other_label;
	}
	float sum = 0;
	for (int j = lane; j < classes; j += row_lanes) sum += exp(logits[j] - top);
#pragma unroll
	for (int mask = row_lanes / 2; mask > 0; mask /= 2) sum += shuffle(sum, mask);
	if (!write) return 0;
	bool labelled = label >= 0;
	float scale = 1 / (sum * (float)n);
	for (int j = lane; j < classes; j += row_lanes)
		grad[j] = labelled ? exp(logits[j] - top) * scale - target[j] / (float)n : 0;
	if (!labelled) return 0;
	*correct += best == label;
	return log(sum) + top - logits[label];
}

// One block. Of a warp's rows the losses are added by a tree, and then those of the warps.
DEVICE void cross_entropy_all(float *__restrict__ loss, unsigned *__restrict__ correct, float *__restrict__ grad,
                              const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes) {
	SHARED double sums[32];
	SHARED int counts[32];
	int lane = thread() % 32, warp = thread() / 32;
	double sum = 0;
	unsigned hits = 0;
	for (int start = 0; start < n; start += rows_at_once) {
		int i = start + thread() / row_lanes;
		bool write = i < n;
		int at = (write ? i : 0) * classes;
		sum += cross_entropy_row(grad + at, logits + at, targets + at, n, classes, write, &hits);
	}
	int count = hits;
#pragma unroll
	for (int mask = row_lanes; mask < 32; mask *= 2) sum += shuffle(sum, mask), count += shuffle(count, mask);
	if (lane == 0) sums[warp] = sum, counts[warp] = count;
	__nvvm_bar_sync(0);
	if (warp > 0) return;
	sum = sums[lane], count = counts[lane];
#pragma unroll
	for (int mask = 16; mask > 0; mask /= 2) sum += shuffle(sum, mask), count += shuffle(count, mask);
	if (lane == 0) *loss = (float)(sum / n), *correct = count;
}

KERNEL LANES(rows_at_once * row_lanes) void cross_entropy(float *__restrict__ loss, unsigned *__restrict__ correct, float *__restrict__ grad,
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

KERNEL LANES(rows_at_once * row_lanes) void cross_entropy_at(float *__restrict__ losses, unsigned *__restrict__ corrects, float *__restrict__ grad,
                        const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes,
                        const scalars *__restrict__ s) {
	cross_entropy_all(losses + s->place, corrects + s->place, grad, logits, targets, n, classes);
}

KERNEL void adam_at(float *__restrict__ params, float *__restrict__ moment1, float *__restrict__ moment2,
               const float *__restrict__ grads, int count, const scalars *__restrict__ s) {
	int i = global_thread();
	if (i < count) adam_one(params + i, moment1 + i, moment2 + i, grads[i], s->rate, s->epsilon);
}
