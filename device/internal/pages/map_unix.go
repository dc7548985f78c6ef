//go:build unix && !race

package pages

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Alloc returns bytes > 0 of zeroed memory that starts on a page. The caller owns
// it until Free.
func Alloc(bytes int64) ([]byte, error) {
	if int64(int(bytes)) != bytes {
		return nil, ErrNoMemory
	}
	mem, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if errors.Is(err, unix.ENOMEM) {
		return nil, ErrNoMemory
	}
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", bytes, err)
	}
	return mem, nil
}

// Free takes mem, which must be what Alloc returned.
func Free(mem []byte) error { return unix.Munmap(mem) }
