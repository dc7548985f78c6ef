package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoDriver is in Open's error, beside device.ErrUnavailable, where no file that could
// be the driver's library is one. The error's Hint names each file that was tried.
var ErrNoDriver = errors.New("no NVIDIA driver found")

// libraryVariable is the environment variable that names the driver's library, by an
// absolute path. It is tried alone.
const libraryVariable = "LEAT_CUDA_LIBRARY"

// A library is one that the system has loaded.
type library struct {
	lookup func(name string) (uintptr, error)
	close  func()
}

// findDriver is search among the places of this system or, if one is named, of that
// library alone.
func findDriver(named string, places []string, open func(string) (library, error), start func(uintptr) result) (*symbols, error) {
	switch {
	case named == "":
		s, err := search(places, open, start)
		if err != nil {
			err = fmt.Errorf("%w; %s in the environment can name its library, by an absolute path", err, libraryVariable)
		}
		return s, err
	case !filepath.IsAbs(named):
		// A path that depends on the working directory could load anything.
		return nil, fmt.Errorf("%s is %q, want an absolute path", libraryVariable, named)
	}
	s, err := search([]string{named}, open, start)
	if err != nil {
		err = fmt.Errorf("%w; nothing else was tried, since %s names it", err, libraryVariable)
	}
	return s, err
}

// search returns the functions of the first candidate that is a driver and starts. One
// of the wrong kind may stand before it: a file for another architecture, the toolkit's
// stub, the driver of the host system under WSL. The error says of every candidate why
// it won't do. If drivers were found and none starts, search returns the first, whose
// cuInit will give the reason again to whoever opens a device.
func search(paths []string, open func(path string) (library, error), start func(cuInit uintptr) result) (*symbols, error) {
	var first *symbols
	var refused, absent []string
	failed := make(map[uintptr]bool) // by cuInit: one library may have several paths
	for _, path := range paths {
		lib, err := open(path)
		if errors.Is(err, os.ErrNotExist) {
			absent = append(absent, path)
			continue
		}
		if err != nil {
			refused = append(refused, reason(path, err))
			continue
		}
		s := new(symbols)
		if err := s.find(lib.lookup); err != nil {
			refused = append(refused, reason(path, err))
			lib.close()
			continue
		}
		if failed[s.initialise] {
			lib.close()
			continue
		}
		switch r := start(s.initialise); r {
		case success:
			return s, nil
		case stubLibrary:
			refused = append(refused, reason(path, errors.New(causes[r].hint)))
			lib.close()
		default: // it has run, and may have threads: it stays loaded
			failed[s.initialise] = true
			if first == nil {
				first = s
			}
		}
	}
	if first != nil {
		return first, nil
	}
	if len(absent) > 0 {
		refused = append(refused, "no such file: "+strings.Join(absent, ", "))
	}
	return nil, fmt.Errorf("%w: %s", ErrNoDriver, strings.Join(refused, "; "))
}

// reason is err with the path in front, where it doesn't begin with it.
func reason(path string, err error) string {
	return path + ": " + strings.TrimPrefix(err.Error(), path+": ")
}
