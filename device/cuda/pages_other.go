//go:build !linux

package cuda

import "unsafe"

// Elsewhere pinned memory comes from cuMemHostAlloc alone.
const canMap = false

// mapPages is for pageable memory: the Go heap's, aligned to a page.
func mapPages(bytes int64, numa int) ([]byte, error) {
	const page = 4096
	mem := make([]byte, bytes+page)
	head := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) & (page - 1)
	return mem[head : head+bytes : head+bytes], nil
}

func keepFromFork([]byte) error { return nil }

func unmapPages([]byte) error { return nil }
