// The network's operations for CUDA, the counterparts of the Go functions in
// matmul.go, bias.go, loss.go, adam.go and parts.go. Every sum has a fixed order, though in
// matmul and cross_entropy not the CPU's.

#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE static __attribute__((device)) inline
#define SHARED __attribute__((shared))

enum { threads = 256 };

DEVICE int thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE int global_thread() { return __nvvm_read_ptx_sreg_ctaid_x() * threads + thread(); }

// A block computes a tile of out, a thread a square of 2×2 in it, its rows and
// columns half a tile apart so that neighbours touch neighbouring memory.
enum { tile = 32, half = tile / 2 };

// What a thread loads of a tile of a and of b.
enum { loads = tile * tile / threads };

// matmul_load loads a thread's part of the tiles that begin at start. In each pair, the
// index that runs along memory is taken from the thread's low bits.
template <bool transpose_a, bool transpose_b>
DEVICE void matmul_load(float *av, float *bv, const float *a, const float *b, int m, int n, int k, int row, int col, int start) {
#pragma unroll
	for (int l = 0; l < loads; l++) {
		int t = thread() + l * threads, low = t % tile, high = t / tile;
		int i = transpose_a ? low : high, p = transpose_a ? high : low;
		bool inside = row + i < m && start + p < k;
		av[l] = !inside ? 0 : transpose_a ? a[(start + p) * m + row + i] : a[(row + i) * k + start + p];
		int j = transpose_b ? high : low, q = transpose_b ? low : high;
		inside = col + j < n && start + q < k;
		bv[l] = !inside ? 0 : transpose_b ? b[(col + j) * k + start + q] : b[(start + q) * n + col + j];
	}
}

template <bool transpose_a, bool transpose_b>
DEVICE void matmul(float *out, const float *a, const float *b, int m, int n, int k) {
	// One more column keeps the threads of a warp in different banks.
	SHARED float as[tile][tile + 1], bs[tile][tile + 1];
	int row = __nvvm_read_ptx_sreg_ctaid_y() * tile, col = __nvvm_read_ptx_sreg_ctaid_x() * tile;
	int x = thread() % half, y = thread() / half;
	float sum[2][2] = {};
	// The next tiles are on their way while these are worked on: with few blocks there
	// is nothing else to do meanwhile.
	float av[loads], bv[loads];
	matmul_load<transpose_a, transpose_b>(av, bv, a, b, m, n, k, row, col, 0);
	for (int start = 0; start < k; start += tile) {
#pragma unroll
		for (int l = 0; l < loads; l++) {
			int t = thread() + l * threads, low = t % tile, high = t / tile;
			as[transpose_a ? low : high][transpose_a ? high : low] = av[l];
			bs[transpose_b ? low : high][transpose_b ? high : low] = bv[l];
		}
		__nvvm_bar_sync(0);
		if (start + tile < k) matmul_load<transpose_a, transpose_b>(av, bv, a, b, m, n, k, row, col, start + tile);
#pragma unroll
		for (int p = 0; p < tile; p++) {
			float a0 = as[y][p], a1 = as[y + half][p], b0 = bs[p][x], b1 = bs[p][x + half];
			sum[0][0] += a0 * b0, sum[0][1] += a0 * b1;
			sum[1][0] += a1 * b0, sum[1][1] += a1 * b1;
		}
		__nvvm_bar_sync(0);
	}
#pragma unroll
	for (int i = 0; i < 2; i++)
#pragma unroll
		for (int j = 0; j < 2; j++) {
			int r = row + y + i * half, c = col + x + j * half;
			if (r < m && c < n) out[r * n + c] = sum[i][j];
		}
}

KERNEL matmul(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<false, false>(out, a, b, m, n, k);
}
KERNEL matmul_ta(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<true, false>(out, a, b, m, n, k);
}
KERNEL matmul_tb(float *__restrict__ out, const float *__restrict__ a, const float *__restrict__ b, int m, int n, int k) {
	matmul<false, true>(out, a, b, m, n, k);
}

KERNEL bias(float *x, const float *__restrict__ bias, int n, int width) {
	int i = global_thread();
	if (i < n * width) x[i] += bias[i % width];
}

KERNEL bias_relu(float *x, const float *__restrict__ bias, int n, int width) {
	int i = global_thread();
	if (i >= n * width) return;
	float v = x[i] + bias[i % width];
	x[i] = v < 0 ? 0 : v; // a NaN stays, to be seen in the loss
}

KERNEL relu_backward(float *grad, const float *__restrict__ activation, int count) {
	int i = global_thread();
	if (i < count && activation[i] == 0) grad[i] = 0;
}

KERNEL column_sum(float *__restrict__ out, const float *__restrict__ x, int n, int width) {
	int j = global_thread();
	if (j >= width) return;
	float sum = 0;
	// There are few threads, so that each must have many loads under way.
#pragma unroll 32
	for (int i = 0; i < n; i++) sum += x[i * width + j];
	out[j] = sum;
}

DEVICE float exp(float x) { return __nvvm_ex2_approx_f(x * 1.44269504f); }
DEVICE float log(float x) { return __nvvm_lg2_approx_f(x) * 0.693147181f; }

// cross_entropy_row is one row; n scales the gradient.
DEVICE float cross_entropy_row(float *grad, const float *logits, const float *target, int n, int classes, unsigned *correct) {
	int best = 0, label = -1;
	for (int j = 0; j < classes; j++) {
		if (logits[j] > logits[best]) best = j;
		if (target[j] != 0) label = j;
	}
	if (label < 0) {
		for (int j = 0; j < classes; j++) grad[j] = 0;
		return 0;
	}
	float top = logits[best], sum = 0;
	for (int j = 0; j < classes; j++) {
		float e = exp(logits[j] - top);
		grad[j] = e;
		sum += e;
	}
	float scale = 1 / (sum * (float)n);
	for (int j = 0; j < classes; j++) grad[j] = grad[j] * scale - target[j] / (float)n;
	*correct += best == label;
	return log(sum) + top - logits[label];
}

// One block; thread t takes rows t, t+256, … and a tree adds the threads' sums.
DEVICE void cross_entropy_all(float *loss, unsigned *correct, float *grad, const float *logits, const float *targets,
                              int n, int classes) {
	SHARED double sums[threads];
	SHARED unsigned counts[threads];
	double sum = 0;
	unsigned count = 0;
	for (int i = thread(); i < n; i += threads)
		sum += cross_entropy_row(grad + i * classes, logits + i * classes, targets + i * classes, n, classes, &count);
	sums[thread()] = sum, counts[thread()] = count;
	for (int step = threads / 2; step > 0; step /= 2) {
		__nvvm_bar_sync(0);
		if (thread() < step) {
			sums[thread()] += sums[thread() + step];
			counts[thread()] += counts[thread() + step];
		}
	}
	if (thread() == 0) *loss = (float)(sums[0] / n), *correct = counts[0];
}

KERNEL cross_entropy(float *__restrict__ loss, unsigned *__restrict__ correct, float *__restrict__ grad,
                     const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes) {
	cross_entropy_all(loss, correct, grad, logits, targets, n, classes);
}

DEVICE void adam_one(float *params, float *moment1, float *moment2, float g, float rate, float epsilon) {
	float m = *moment1 + (float)(1 - 0.9) * (g - *moment1);
	float v = *moment2 + (float)(1 - 0.999) * (g * g - *moment2);
	*moment1 = m, *moment2 = v;
	*params -= rate * m / (__nvvm_sqrt_rn_f(v) + epsilon);
}

KERNEL adam(float *__restrict__ params, float *__restrict__ moment1, float *__restrict__ moment2,
            const float *__restrict__ grads, int count, float rate, float epsilon) {
	int i = global_thread();
	if (i < count) adam_one(params + i, moment1 + i, moment2 + i, grads[i], rate, epsilon);
}

// The parts lie one behind the other and are added in that order.
KERNEL mean(float *__restrict__ out, const float *__restrict__ parts, int n, int count) {
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

KERNEL cross_entropy_at(float *__restrict__ losses, unsigned *__restrict__ corrects, float *__restrict__ grad,
                        const float *__restrict__ logits, const float *__restrict__ targets, int n, int classes,
                        const scalars *__restrict__ s) {
	cross_entropy_all(losses + s->place, corrects + s->place, grad, logits, targets, n, classes);
}

KERNEL adam_at(float *__restrict__ params, float *__restrict__ moment1, float *__restrict__ moment2,
               const float *__restrict__ grads, int count, const scalars *__restrict__ s) {
	int i = global_thread();
	if (i < count) adam_one(params + i, moment1 + i, moment2 + i, grads[i], s->rate, s->epsilon);
}
