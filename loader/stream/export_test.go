package stream

import (
	"github.com/leat-go/leat/loader/internal/whole"
)

// FailWrites lets the write behind so many others to files of caches fail, and all behind it.
func FailWrites(behind int, err error) (restore func()) {
	before := writeFile
	writeFile = func(f *whole.File, p []byte) (int, error) {
		if behind--; behind < 0 {
			return 0, err
		}
		return before(f, p)
	}
	return func() { writeFile = before }
}
