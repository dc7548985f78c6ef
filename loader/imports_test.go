package loader_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Imports point one way: the loader fills memory and knows no device.
func TestTheLoaderKnowsNoDevice(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	const module = "github.com/leat-go/leat/"
	for _, path := range strings.Fields(string(out)) {
		if strings.HasPrefix(path, module) {
			leaf := path == module+"dtype" || path == module+"observe/journal" || path == module+"internal/usercode"
			require.True(t, leaf || strings.HasPrefix(path, module+"loader"), "loader imports %s", path)
		}
		require.NotContains(t, path, "purego")
	}
}
