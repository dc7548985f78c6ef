// All kernels, in one translation unit and so in one module.
#include "normalize.cuh"
#include "onehot.cuh"
#include "checksum.cuh"
#include "convert.cuh"
#include "crop.cuh"
#include "gather.cuh"
#include "fill.cuh"
#include "spin.cuh"
