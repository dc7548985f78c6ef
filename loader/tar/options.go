package tar

import (
	"fmt"
	"math"
	"strings"

	"github.com/leat-go/leat/loader"
)

// Options tunes Open and NewStream. The zero value is ready to use.
type Options struct {
	// Key takes a path apart. nil means FirstPoint.
	Key KeyFunc
	// MaxBytes is the largest sample, all parts together and with their headers. 0 means 1 GiB.
	MaxBytes int64
	// Mapped maps files that are paths into memory, for Open; see source.Mapped.
	Mapped bool

	// Shards is the number of shards of a stream: file i belongs to shard i%Shards. 0 means one
	// for each file.
	Shards int
	// Shuffle has a stream read the files of each shard in another order in each pass.
	Shuffle bool
}

// A KeyFunc takes the path of a file apart. Files that follow each other and have the same
// key are one sample, in which suffix tells them apart. A file that is not ok is no part of
// any. It may be called by several goroutines at once.
type KeyFunc func(path string) (key, suffix string, ok bool)

// FirstPoint cuts at the first point of the last part of a path, as WebDataset does.
func FirstPoint(path string) (key, suffix string, ok bool) {
	return cutAt(path, strings.IndexByte)
}

// LastPoint cuts at the last point, for names with points in them: "Track 2.0.mp3" has key
// "Track 2.0".
func LastPoint(path string) (key, suffix string, ok bool) {
	return cutAt(path, strings.LastIndexByte)
}

func cutAt(path string, find func(s string, c byte) int) (key, suffix string, ok bool) {
	for strings.HasPrefix(path, "./") {
		path = path[2:]
	}
	base := strings.LastIndexByte(path, '/') + 1
	name := path[base:]
	at := find(name, '.')
	if at < 1 || strings.HasPrefix(name, ".") {
		return "", "", false
	}
	return path[:base+at], strings.ToLower(name[at+1:]), true
}

// isMeta reports whether a file says something of the archive and is no part of a sample.
func isMeta(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return len(name) >= 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") ||
		strings.HasPrefix(path, "PaxHeader") || strings.Contains(path, "/PaxHeader")
}

const defaultBytes = 1 << 30

func (o Options) filled() (Options, error) {
	if o.MaxBytes < 0 || o.MaxBytes > math.MaxInt {
		return o, &loader.OptionError{Package: "tar", Option: "MaxBytes", Value: o.MaxBytes, Want: fmt.Sprintf("0 (%d) to %d", defaultBytes, math.MaxInt)}
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultBytes
	}
	if o.Key == nil {
		o.Key = FirstPoint
	}
	return o, nil
}
