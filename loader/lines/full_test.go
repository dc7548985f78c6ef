//go:build linux

package lines_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leat-go/leat/loader/lines"
)

// Where an index can't be written the lines are there all the same, and nothing is left behind.
func TestAFullDisk(t *testing.T) {
	if path := os.Getenv("LEAT_LINES_FULL"); path != "" {
		signal.Ignore(unix.SIGXFSZ)
		limit := unix.Rlimit{Cur: 4096, Max: 4096}
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit)) // of this process
		got, indexes := read(t, lines.Options{}, path)
		require.Len(t, got, 10_000)
		require.Equal(t, "last", got[9999])
		require.Empty(t, indexes[0].Path)
		require.Contains(t, indexes[0].Why, "file too large")
		return
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	write(t, path, strings.Repeat("x\n", 9_999)+"last\n")
	limited := exec.Command(os.Args[0], "-test.run=^TestAFullDisk$")
	limited.Env = append(os.Environ(), "LEAT_LINES_FULL="+path)
	out, err := limited.CombinedOutput()
	require.NoError(t, err, "%s", out)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
