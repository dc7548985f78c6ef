#!/bin/sh
# Makes nn.ptx from nn.cu. It needs clang 14 and no CUDA toolkit: another version
# of clang writes other text, which the tests would report.
set -eu
cd "$(dirname "$0")"
exec "${CLANG:-clang-14}" -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -Xclang -target-feature -Xclang +ptx60 -nocudainc -nocudalib \
	-O3 -ffp-contract=off -S -o "${1:-nn.ptx}" nn.cu
