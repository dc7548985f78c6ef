//go:build linux || darwin

package source

import "os"

// MapLonger opens a file that is taken to have size bytes: as if it had lost some between
// the look at its size and the mapping.
func MapLonger(path string, size int64) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	mapped, err := mapFile(f, size)
	if err != nil {
		return nil, err
	}
	return NewFile(path, Info{Size: size}, readsAt(mapped), mapped.release), nil
}
