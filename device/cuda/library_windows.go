//go:build !leat_nocuda && windows && (amd64 || arm64)

package cuda

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// openLibrary looks in the system's directory only, where the driver installs
// nvcuda.dll, and never in the working directory.
func openLibrary() (lookup func(name string) (uintptr, error), err error) {
	const name = "nvcuda.dll"
	lib, err := windows.LoadLibraryEx(name, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if err != nil {
		return nil, fmt.Errorf("no NVIDIA driver found: %s: %w", name, err)
	}
	return func(name string) (uintptr, error) { return windows.GetProcAddress(lib, name) }, nil
}
