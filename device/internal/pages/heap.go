//go:build !unix || race

package pages

import "unsafe"

// Alloc returns bytes > 0 of zeroed memory that starts on a page. The caller owns
// it until Free.
func Alloc(bytes int64) ([]byte, error) {
	// More than the machine has would end the program instead of this call.
	if total := Total(); bytes > 1<<46 || total > 0 && bytes > total {
		return nil, ErrNoMemory
	}
	mem := make([]byte, bytes+int64(Size))
	page := uintptr(Size)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (page - 1)
	return mem[skip : int64(skip)+bytes : int64(skip)+bytes], nil
}

// Free takes mem, which must be what Alloc returned.
func Free([]byte) error { return nil }
