//go:build !unix || race

package pages

// Alloc returns bytes > 0 of zeroed memory that starts on a page. The caller owns
// it until Free.
func Alloc(bytes int64) ([]byte, error) { return Heap(bytes) }

// Free takes mem, which must be what Alloc returned.
func Free([]byte) error { return nil }
