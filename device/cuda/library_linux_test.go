//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// compiled makes a library of all the driver's functions, which return 0, but for
// cuInit, which returns init, and without, which is left out.
func compiled(t *testing.T, name string, init result, without string) string {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("no compiler to make libraries with: %v", err)
	}
	var source strings.Builder
	for _, sym := range new(symbols).table() {
		value := result(0)
		if sym.name == "cuInit" {
			value = init
		}
		if sym.name != without {
			fmt.Fprintf(&source, "int %s(void) { return %d; }\n", sym.name, value)
		}
	}
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Mkdir(dir, 0o755))
	path := filepath.Join(dir, libraryName)
	cmd := exec.Command(gcc, "-shared", "-fPIC", "-nostdlib", "-x", "c", "-o", path, "-")
	cmd.Stdin = strings.NewReader(source.String())
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, string(said))
	return path
}

// The search with the system's own loader.
func TestLibrariesAreLoaded(t *testing.T) {
	good, stub := compiled(t, "good", 0, ""), compiled(t, "stub", stubLibrary, "")
	old := compiled(t, "old", 0, "cuMemAlloc_v2")
	narrow, err := os.ReadFile(good)
	require.NoError(t, err)
	narrow[4] = 1 // ELFCLASS32
	narrowPath := filepath.Join(t.TempDir(), libraryName)
	require.NoError(t, os.WriteFile(narrowPath, narrow, 0o755))
	text := filepath.Join(t.TempDir(), libraryName)
	require.NoError(t, os.WriteFile(text, []byte("not a library"), 0o755))
	absent := filepath.Join(t.TempDir(), libraryName)

	start := func(cuInit uintptr) result { return invoke(cuInit, make([]uintptr, 1)) }
	s, err := findDriver("", []string{absent, narrowPath, text, t.TempDir(), stub, old, good}, openLibrary, start)
	require.NoError(t, err)
	lib, err := openLibrary(good)
	require.NoError(t, err)
	want, err := lib.lookup("cuInit")
	require.NoError(t, err)
	require.Equal(t, want, s.initialise)

	_, err = findDriver("", []string{absent, narrowPath, text, stub, old}, openLibrary, start)
	for _, part := range []string{narrowPath + ": wrong ELF class", text + ": ", stub + ": the library found is a stub", old + ": the driver is too old", "no such file: " + absent} {
		require.ErrorContains(t, err, part)
	}
}

// From the environment to the caller, in a process of its own.
func TestTheEnvironmentNamesTheLibrary(t *testing.T) {
	stub := compiled(t, "stub", stubLibrary, "")
	for named, want := range map[string]string{
		stub:              "is a stub",
		"libcuda.so.1":    "want an absolute path",
		"/nowhere/at/all": "no such file: /nowhere/at/all",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheEnvironmentNamesTheLibrary$")
		cmd.Env = append(os.Environ(), libraryVariable+"="+named, faultIn+"=open")
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, string(said))
		require.Contains(t, string(said), device.ErrUnavailable.Error())
		require.Contains(t, string(said), want)
		require.NotContains(t, string(said), "/usr/lib")
	}
}
