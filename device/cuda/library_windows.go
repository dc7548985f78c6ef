//go:build !leat_nocuda && windows && (amd64 || arm64)

package cuda

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// libraryPlaces is the system's directory, where the driver installs its library, and
// never the working directory.
func libraryPlaces() []string { return []string{"nvcuda.dll"} }

func openLibrary(path string) (library, error) {
	flags := uintptr(windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if filepath.IsAbs(path) {
		flags = windows.LOAD_LIBRARY_SEARCH_SYSTEM32 | windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR
	}
	lib, err := windows.LoadLibraryEx(path, 0, flags)
	if err != nil {
		return library{}, err
	}
	return library{
		lookup: func(name string) (uintptr, error) { return windows.GetProcAddress(lib, name) },
		close:  func() { _ = windows.FreeLibrary(lib) },
	}, nil
}
