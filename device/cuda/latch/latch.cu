// Kernels that hold a stream, for tests. latch.ptx is made of this file by
//
//	go generate ./device/cuda/latch
//
// No CUDA header is needed.
#define __global__ __attribute__((global))

typedef unsigned int u32;
typedef unsigned long long u64;

static __attribute__((device)) u64 nanoseconds() {
	u64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) : : "memory");
	return t;
}

// Waits until state[0], in host memory, has reached turn, but for no more than
// limit nanoseconds, so that a test that goes wrong doesn't hold the device for
// ever. That it gave up is left in state[1].
extern "C" __global__ void leat_latch_hold(volatile u32 *state, u32 turn, u64 limit) {
	u64 began = nanoseconds();
	while ((int)(state[0] - turn) < 0) {
		if (nanoseconds() - began > limit) {
			state[1] = 1;
			return;
		}
	}
}

// Keeps the stream busy for the given time.
extern "C" __global__ void leat_latch_spin(u64 duration) {
	u64 began = nanoseconds();
	while (nanoseconds() - began < duration) {
	}
}

// Stores where no memory is: the fault that ends a context.
extern "C" __global__ void leat_latch_fault(u64 address) {
	*(volatile u32 *)address = 1;
}
