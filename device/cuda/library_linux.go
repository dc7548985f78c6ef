//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/ebitengine/purego"
)

const libraryName = "libcuda.so.1"

// libraryPlaces are the places of the driver's library in the order in which they are
// tried: where the system's loader looks, which heeds LD_LIBRARY_PATH, then where
// systems keep it of which the loader need not know.
func libraryPlaces() []string {
	multiarch := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	places := []string{libraryName}
	for _, dir := range []string{
		"/usr/lib/wsl/lib",                          // WSL
		"/run/opengl-driver/lib",                    // NixOS
		"/usr/local/nvidia/lib64",                   // containers whose host mounts it
		"/usr/lib/" + multiarch,                     // Debian, and images without a loader's cache
		"/usr/lib64",                                // Red Hat, SUSE
		"/usr/lib",                                  // Arch
		"/usr/lib/" + multiarch + "/nvidia/current", // Debian's alternatives
		"/usr/lib/" + multiarch + "/tegra",          // Jetson
		"/usr/lib/" + multiarch + "/nvidia",         // newer Jetsons
		"/var/lib/snapd/lib/gl",                     // snaps
	} {
		places = append(places, filepath.Join(dir, libraryName))
	}
	return places
}

func openLibrary(path string) (library, error) {
	if filepath.IsAbs(path) {
		if _, err := os.Stat(path); err != nil {
			return library{}, err
		}
	}
	// dlerror is per thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return library{}, err
	}
	return library{
		lookup: func(name string) (uintptr, error) { return purego.Dlsym(lib, name) },
		close:  func() { _ = purego.Dlclose(lib) }, // what stays loaded does no harm
	}, nil
}
