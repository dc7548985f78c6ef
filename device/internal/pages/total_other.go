//go:build !linux && !darwin && !windows

package pages

// Total is the machine's memory in bytes, 0 where the system doesn't say.
func Total() int64 { return 0 }
