//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/ebitengine/purego"
)

func openLibrary() (lookup func(name string) (uintptr, error), err error) {
	const name = "libcuda.so.1"
	lib, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("no NVIDIA driver found: %w", err) // dlopen names the library
	}
	return func(name string) (uintptr, error) { return purego.Dlsym(lib, name) }, nil
}
