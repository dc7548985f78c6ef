//go:build !unix && !windows

package pages

// Lock can't lock pages on this system.
func Lock([]byte) error { return ErrLockLimit }

// Unlock ends Lock.
func Unlock([]byte) error { return nil }
