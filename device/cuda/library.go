//go:build !leat_nocuda && (linux || windows) && (amd64 || arm64)

package cuda

import (
	"os"
	"sync"

	"github.com/ebitengine/purego"
)

// load finds the driver once for the process.
var load = sync.OnceValues(func() (*symbols, error) {
	start := func(cuInit uintptr) result { return invoke(cuInit, make([]uintptr, 1)) }
	return findDriver(os.Getenv(libraryVariable), libraryPlaces(), openLibrary, start)
})

// invoke calls the C function at fn. purego makes args escape: they must be on the
// heap already if the call is to allocate nothing.
func invoke(fn uintptr, args []uintptr) result {
	r, _, _ := purego.SyscallN(fn, args...)
	return result(uint32(r))
}

// hostFuncEntry is the C function that the driver calls for every host function.
// There is one for the process, because callbacks are few and are never freed.
var hostFuncEntry = sync.OnceValue(func() uintptr {
	return purego.NewCallback(runHostFunc)
})
