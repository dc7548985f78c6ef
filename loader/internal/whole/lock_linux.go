package whole

import (
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// machine is short for this machine since it was started, for the names of files whose locks
// it knows: those of other machines on a shared file system it may not. It is empty if that
// is not known.
var machine = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(id), "-")
	return strings.TrimSpace(first)
})

// lock takes the file's lock, which its process has until it closes the file or ends, however
// it ends. It is false if another open file has it, and an error where there are no locks.
func lock(f *os.File) (free bool, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	failed := raw.Control(func(fd uintptr) { err = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, failed
	}
	return err == nil, errors.Join(err, failed)
}
