// Busy-waiting: see spin.go.
#include "cuda.cuh"

DEVICE u64 nanoseconds() {
	u64 t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

// The global timer advances in steps of up to a microsecond, and does so whatever
// the clock rate is.
KERNEL void spin(i64 d) {
	u64 start = nanoseconds();
	while (nanoseconds() - start < (u64)d) {}
}
