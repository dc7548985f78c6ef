package compose

import "os"

// SetWriteAt replaces what caches write their files with, until the returned function is
// called.
func SetWriteAt(f func(*os.File, []byte, int64) (int, error)) (restore func()) {
	old := writeAt
	writeAt = f
	return func() { writeAt = old }
}
