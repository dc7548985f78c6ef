// The scrambling function that random numbers and checksums share: see mix in
// checksum.go.
#pragma once
#include "cuda.cuh"

DEVICE u64 mix(u64 z) {
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
