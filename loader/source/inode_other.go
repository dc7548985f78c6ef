//go:build !unix

package source

import "io/fs"

// inode is 0: the number of a file is not known without opening it.
func inode(fs.FileInfo) uint64 { return 0 }
