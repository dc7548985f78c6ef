package pages

import "unsafe"

// Heap returns bytes > 0 of zeroed Go memory that starts on a page: it lives for as
// long as anything refers to it.
func Heap(bytes int64) ([]byte, error) {
	// More than the machine has would end the program instead of this call.
	if total := Total(); bytes > 1<<46 || total > 0 && bytes > total || int64(int(bytes)) != bytes {
		return nil, ErrNoMemory
	}
	mem := make([]byte, bytes+int64(Size))
	page := uintptr(Size)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mem))) & (page - 1)
	return mem[skip : int64(skip)+bytes : int64(skip)+bytes], nil
}
