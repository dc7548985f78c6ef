package pages

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Lock keeps mem's pages in memory until Unlock.
func Lock(mem []byte) error {
	if err := windows.VirtualLock(start(mem), uintptr(len(mem))); err != nil {
		return fmt.Errorf("%w: VirtualLock of %d bytes: %w", ErrLockLimit, len(mem), err)
	}
	return nil
}

// Unlock ends Lock.
func Unlock(mem []byte) error { return windows.VirtualUnlock(start(mem), uintptr(len(mem))) }

func start(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
