//go:build !linux && !darwin

package source

// Mapped is s: files are mapped into memory on Linux and macOS only.
func Mapped(s Source) Source { return s }
