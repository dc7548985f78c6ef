package prefetch_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's loop is the one that runs as this package's Example.
func TestTheReadmesLoopIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_loop_test.go")
	require.NoError(t, err)
	_, loop, found := strings.Cut(strings.ReplaceAll(string(readme), "\r\n", "\n"), "```go\nfunc train(")
	require.True(t, found)
	loop, _, found = strings.Cut(loop, "```")
	require.True(t, found)
	require.Contains(t, strings.ReplaceAll(string(example), "\r\n", "\n"), "func train("+loop)
}
