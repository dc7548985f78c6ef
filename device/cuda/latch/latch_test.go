package latch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed PTX is what clang makes of the committed source.
func TestPTXIsBuiltFromTheSource(t *testing.T) {
	clang, err := exec.LookPath("clang-14")
	if err != nil {
		t.Skip("clang-14 is not installed:", err)
	}
	out := filepath.Join(t.TempDir(), "latch.ptx")
	cmd := exec.Command(clang, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_70",
		"-nocudainc", "-nocudalib", "-O3", "-ffp-contract=off", "-S", "-o", out, "latch.cu")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	built, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, string(built), ptx)
}
