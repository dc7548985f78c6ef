package pages

import "golang.org/x/sys/unix"

// Total is the machine's memory in bytes, 0 where the system doesn't say.
func Total() int64 {
	bytes, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(bytes)
}
