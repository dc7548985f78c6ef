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

// builderPath tells a child process which cache to build, and builderHangs that it is to hang
// in the middle.
const (
	builderPath  = "LEAT_TEST_CACHE"
	builderHangs = "LEAT_TEST_HANG"
)

// TestBuilder is the child. It says when it has a half.
func TestBuilder(t *testing.T) {
	path := os.Getenv(builderPath)
	if path == "" {
		t.Skip("it is run by tests of several processes")
	}
	ds := loader.FromFunc(1000, xField, func(_ context.Context, i int, row *loader.Row) error {
		if i == 500 {
			fmt.Println("half")
			if os.Getenv(builderHangs) != "" {
				select {}
			}
		}
		return loader.Write(row, "x", int64(i))
	})
	cache, err := compose.CacheFile(ds, path, "1")
	require.NoError(t, err)
	require.NoError(t, cache.Build(t.Context()))
}

func builder(path string, more ...string) *exec.Cmd {
	child := exec.Command(os.Args[0], "-test.run=^TestBuilder$", "-test.timeout=60s")
	child.Env = append(append(os.Environ(), builderPath+"="+path), more...)
	return child
}

// A builder that was killed leaves no cache, and nothing that stops the next, which may be
// killed as well.
func TestAKilledBuilderIsNoHindrance(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for range 2 {
		child := builder(path, builderHangs+"=1")
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

// Several processes build one cache at once, and one of them is killed.
func TestProcessesBuildAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	children := []*exec.Cmd{builder(path), builder(path), builder(path, builderHangs+"=1")}
	for _, child := range children {
		require.NoError(t, child.Start())
	}
	require.NoError(t, children[0].Wait())
	require.NoError(t, children[1].Wait())
	require.NoError(t, children[2].Process.Kill())
	_ = children[2].Wait()
	cache, err := compose.CacheFile(values(upTo(0, 1000)...), path, "1")
	require.NoError(t, err)
	require.True(t, cache.Stats().Whole)
	require.Equal(t, upTo(0, 1000), contents(t, cache, 1)[0])
	require.Zero(t, cache.Stats().Reads)
	require.NoError(t, cache.Close())
}

// A rank reads a part of the samples, and its cache stays absent, in every epoch. With what the
// other rank has it would be whole, and Build makes it so.
func TestACacheOfOneRankOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cache")
	for range 2 { // tried again
		cache, err := compose.CacheFile(values(upTo(0, 103)...), path, "1")
		require.NoError(t, err)
		l, err := loader.New(cache, 4, loader.Options{Epochs: 2, Last: loader.Drop, Shard: loader.Shard{Index: 0, Count: 2}})
		require.NoError(t, err)
		mem, err := loader.NewHeap(l.Layout().Size(), 3)
		require.NoError(t, err)
		run := l.Start(t.Context(), loader.Cursor{}, mem)
		for err != loader.ErrEnd {
			var f loader.Filled
			if f, err = run.Next(t.Context()); err == nil {
				mem.Put(f.Slot)
			}
		}
		require.NoError(t, run.Close())
		require.Equal(t, 48, cache.Stats().Held)
		require.Equal(t, int64(48), cache.Stats().Reads, "no sample is read twice while it is held")
		require.False(t, cache.Stats().Whole)
		require.NoError(t, cache.Close())
		require.NoFileExists(t, path)
	}
	cache, err := compose.CacheFile(values(upTo(0, 103)...), path, "1")
	require.NoError(t, err)
	require.NoError(t, cache.Build(t.Context()))
	require.Equal(t, upTo(0, 103), contents(t, cache, 1)[0])
	require.NoError(t, cache.Close())
}
