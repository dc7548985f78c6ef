// Package kernels has the work that a batch most often needs on the device: normalise
// images and change their layout, convert element types, crop and flip, write labels as
// one-hot rows, gather rows by index, and prove by a checksum what arrived. Package
// prefetch/chain makes a Transform of several. Spin and Fill are useful in tests and
// measurements too.
//
// Each function submits its work to a stream and returns without waiting; the memory of
// its views must stay allocated, and what is read must not change, until the stream has
// run it. The
// stream comes first, then what is written, then what is read; these may share no
// byte. Sizes, element types and alignment are checked before anything is submitted, in
// the same way on every device, and all mistakes come back in one *Error, each an
// *OptionError. A call allocates nothing.
//
// # One operation, two forms
//
// An operation lives in one .go file beside a .cuh file of the same name: a Go
// version, which the CPU device runs in stream order, and a CUDA version, which
// kernels.ptx carries to the GPU. Both give the same bytes:
//
//   - A NaN that comes out is canonical: 7fffffff in float32, 7fff in float16 and
//     bfloat16.
//   - Rounding is to nearest, ties to even, once for each operation written: no
//     product is fused with a sum. Go converts products explicitly for that, and
//     the PTX is compiled without contraction.
//   - Float to uint8 clamps to 0 and 255, rounds ties to even, and takes NaN to 0.
//   - bfloat16 is converted by integer arithmetic, because the instruction for it
//     is missing on older devices.
//   - A checksum is integer arithmetic modulo 2^64, which no order of summation
//     can change.
//
// The PTX needs compute capability 7.0 or higher. It is committed, so that nobody
// needs a compiler for it; generate.sh makes it from the sources.
package kernels

//go:generate ./generate.sh
