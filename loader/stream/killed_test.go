package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/stream"
)

// builderIn tells a child process in which directory to build files, and builderHangs that it
// is to hang in the middle.
const (
	builderIn    = "LEAT_TEST_CACHE"
	builderHangs = "LEAT_TEST_HANG"
)

// TestBuilder is the child. It says when it has a half.
func TestBuilder(t *testing.T) {
	directory := os.Getenv(builderIn)
	if directory == "" {
		t.Skip("it is run by tests of several processes")
	}
	var open atomic.Int64
	s := stream.Map(count(&open, 0, 20_000, 2), func(_ context.Context, n int) (int, error) {
		if n == 10_000 {
			fmt.Println("half")
			if os.Getenv(builderHangs) != "" {
				select {}
			}
		}
		return n, nil
	})
	require.NoError(t, cacheFile(s, directory).Build(t.Context()))
}

func builder(directory string, more ...string) *exec.Cmd {
	child := exec.Command(os.Args[0], "-test.run=^TestBuilder$", "-test.timeout=60s")
	child.Env = append(append(os.Environ(), builderIn+"="+directory), more...)
	return child
}

// Processes that are killed in the middle leave no file, and nothing that stops the next, which
// may be killed as well.
func TestAKilledBuilderIsNoHindrance(t *testing.T) {
	directory := t.TempDir()
	for range 2 {
		child := builder(directory, builderHangs+"=1")
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && lines.Text() != "half" {
		}
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
		require.NotContains(t, filesIn(t, directory), "0-of-2.cache", "number 10,000 is of shard 0")
	}
	requireBuilt(t, directory)
}

// Several processes build the same files at once.
func TestProcessesBuildAtOnce(t *testing.T) {
	directory := t.TempDir()
	var children []*exec.Cmd
	for range 3 {
		children = append(children, builder(directory))
		require.NoError(t, children[len(children)-1].Start())
	}
	for _, child := range children {
		require.NoError(t, child.Wait())
	}
	requireBuilt(t, directory)
	require.Equal(t, []string{"0-of-2.cache", "1-of-2.cache"}, filesIn(t, directory))
}

func requireBuilt(t *testing.T, directory string) {
	var open atomic.Int64
	s := count(&open, 0, 20_000, 2)
	c := cacheFile(s, directory)
	require.NoError(t, c.Build(ctx))
	for shard := range 2 {
		require.Equal(t, read(t, s, pass, shard), read(t, c.Stream(), pass, shard))
	}
	require.Equal(t, 2, c.Stats().Whole)
}
