package arrows

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/leat-go/leat/"

// deps are the packages that one of the module is built from.
func deps(t *testing.T, pkg string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+pkg).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Fields(string(out))
}

func TestImportsPointOneWay(t *testing.T) {
	for pkg, never := range map[string][]string{
		"dtype":          {"device", "device/driver", "loader", "kernels", "prefetch"},
		"loader":         {"device", "device/driver", "kernels", "pinnedpool", "prefetch"},
		"device":         {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/driver":  {"device", "loader", "kernels"},
		"device/order":   {"device", "loader", "kernels"},
		"device/meter":   {"device/cpu", "device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/cpu":     {"device/cuda", "loader", "kernels", "pinnedpool", "prefetch"},
		"device/cuda":    {"device/cpu", "loader", "kernels", "pinnedpool", "prefetch"},
		"kernels":        {"device/cpu", "device/cuda", "loader", "pinnedpool", "prefetch"},
		"pinnedpool":     {"device/cpu", "device/cuda", "loader", "kernels", "prefetch"},
		"prefetch":       {"device/cuda", "device/auto", "prefetch/chain"},
		"prefetch/chain": {"device/cuda", "device/auto"},
	} {
		got := deps(t, pkg)
		for _, n := range never {
			require.NotContains(t, got, module+n, "%s imports it", pkg)
		}
	}
}

// Only device/cuda calls C.
func TestOnlyCUDAKnowsPurego(t *testing.T) {
	for _, pkg := range []string{"device/cpu", "loader", "kernels", "pinnedpool", "prefetch"} {
		require.False(t, slices.ContainsFunc(deps(t, pkg), func(d string) bool { return strings.Contains(d, "purego") }), pkg)
	}
}
