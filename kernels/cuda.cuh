// What the kernels need of CUDA, without its headers.
#pragma once

#define KERNEL extern "C" __attribute__((global))
#define INLINE __attribute__((device, always_inline)) inline
#define DEVICE static INLINE
#define SHARED __attribute__((shared))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef u8 u8x4 __attribute__((ext_vector_type(4)));
typedef u16 u16x4 __attribute__((ext_vector_type(4)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

// This thread among those of x, and how many they are: a grid-stride loop starts
// at the first and steps by the second.
DEVICE i64 first() { return (i64)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x(); }
DEVICE i64 stride() { return (i64)__nvvm_read_ptx_sreg_nctaid_x() * __nvvm_read_ptx_sreg_ntid_x(); }

// Rows are spread over y.
DEVICE i64 first_row() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE i64 row_stride() { return __nvvm_read_ptx_sreg_nctaid_y(); }

DEVICE bool aligned(const void *p, u64 bytes) { return ((u64)p & (bytes - 1)) == 0; }

DEVICE u32 bits(float f) { return __builtin_bit_cast(u32, f); }
DEVICE float from_bits(u32 b) { return __builtin_bit_cast(float, b); }
