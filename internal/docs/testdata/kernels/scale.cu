// out[i] = in[i] * factor, for n elements. A thread takes every stride-th of them.
extern "C" __attribute__((global)) void scale(float *out, const float *in, float factor, long long n) {
	long long stride = (long long)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
	long long i = (long long)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
	for (; i < n; i += stride) out[i] = in[i] * factor;
}
