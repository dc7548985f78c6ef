package source

import (
	"fmt"
	"io/fs"
)

// infoOf is the Info of a file. Its version is made of the size, the time of the last
// change, and the number of the file in its file system where there is one: a file that
// was put in the place of another has another number.
func infoOf(stat fs.FileInfo) Info {
	changed := stat.ModTime()
	return Info{
		Size:    stat.Size(),
		Version: fmt.Sprintf("%d-%d.%09d-%d", stat.Size(), changed.Unix(), changed.Nanosecond(), inode(stat)),
	}
}
