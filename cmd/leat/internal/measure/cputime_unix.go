//go:build unix

package measure

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is the processor time that this process has used so far, of all its
// threads.
func CPUTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
