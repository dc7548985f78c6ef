package compose_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
)

// builderPath tells a child process which cache to build.
const builderPath = "LEAT_TEST_CACHE"

// TestBuilder is the child: it builds a half, says so, and hangs until it is killed.
func TestBuilder(t *testing.T) {
	path := os.Getenv(builderPath)
	if path == "" {
		t.Skip("it is run by TestAKilledBuilderIsNoHindrance")
	}
	ds := loader.FromFunc(1000, xField, func(_ context.Context, i int, row *loader.Row) error {
		if i == 500 {
			fmt.Println("half")
			select {}
		}
		return loader.Write(row, "x", int64(i))
	})
	cache, err := compose.CacheFile(ds, path, "1")
	require.NoError(t, err)
	require.NoError(t, cache.Build(t.Context()))
}

// A builder that was killed leaves no cache, and nothing that stops the next, which may be
// killed as well.
func TestAKilledBuilderIsNoHindrance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		child := exec.Command(os.Args[0], "-test.run=^TestBuilder$", "-test.timeout=60s")
		child.Env = append(os.Environ(), builderPath+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "half" {
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.Equal(t, "half", lines.Text())
		require.NoFileExists(t, path)
	}
	cache, err := compose.CacheFile(values(upTo(0, 1000)...), path, "1")
	require.NoError(t, err)
	require.NoError(t, cache.Build(t.Context()))
	require.Equal(t, upTo(0, 1000), contents(t, cache, 1)[0])
	require.NoError(t, cache.Close())
	require.FileExists(t, path)
}
