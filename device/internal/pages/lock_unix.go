//go:build unix

package pages

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Lock keeps mem's pages in memory until Unlock.
func Lock(mem []byte) error {
	if err := unix.Mlock(mem); err != nil {
		return fmt.Errorf("%w: mlock of %d bytes: %w", ErrLockLimit, len(mem), err)
	}
	return nil
}

// Unlock ends Lock.
func Unlock(mem []byte) error { return unix.Munlock(mem) }
