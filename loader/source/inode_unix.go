//go:build unix

package source

import (
	"io/fs"
	"syscall"
)

// inode is the number of a file in its file system, 0 if it is not known.
func inode(stat fs.FileInfo) uint64 {
	if sys, ok := stat.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Ino)
	}
	return 0
}
