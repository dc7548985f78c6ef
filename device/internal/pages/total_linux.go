package pages

import "golang.org/x/sys/unix"

// Total is the machine's memory in bytes, 0 where the system doesn't say.
func Total() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}
