package kerneltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rebuilt wants script, which takes the name of the file to write, to make the
// committed PTX again, byte for byte. It skips where clang-14 is not installed.
func Rebuilt(t *testing.T, script, committed string) {
	if _, err := exec.LookPath("clang-14"); err != nil {
		t.Skipf("no compiler to rebuild the PTX with: %v", err)
	}
	file := filepath.Join(t.TempDir(), "rebuilt.ptx")
	said, err := exec.Command(script, file).CombinedOutput()
	require.NoError(t, err, string(said))
	rebuilt, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(rebuilt) == committed, "the committed PTX is not what %s makes of the sources: run it", script)
}

// Unfused wants each product and sum of floats in the PTX to be rounded by itself.
// Without the suffix .rn the assembler may fuse them.
func Unfused(t *testing.T, ptx string) {
	require.Empty(t, regexp.MustCompile(`\bfma\S*|\bmad\.[a-z]+\.?f\S*|\b(?:mul|add|sub)\.f\S*`).FindAllString(ptx, -1))
	require.NotEmpty(t, regexp.MustCompile(`\bmul\.rn\.f32`).FindString(ptx), "no product at all: is this the right PTX?")
}

// Inlined wants the PTX to call no function and to keep nothing in local memory,
// which is slow: a device function that the compiler did not inline shows so.
func Inlined(t *testing.T, ptx string) {
	require.Empty(t, regexp.MustCompile(`\bcall\S*|\S*\.local\.\S*`).FindAllString(ptx, -1))
}
