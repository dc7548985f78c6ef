package measure

import (
	"time"

	"golang.org/x/sys/windows"
)

// CPUTime is the processor time that this process has used so far, of all its
// threads.
func CPUTime() (time.Duration, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	return hundreds(kernel) + hundreds(user), nil
}

// hundreds is a span of time, which Windows counts in units of 100 ns.
func hundreds(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
