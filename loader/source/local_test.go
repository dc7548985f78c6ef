package source_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

func TestLocalPath(t *testing.T) {
	for _, s := range []source.Source{source.Path("a/b"), source.Mapped(source.Path("a/b")), source.NewPool(1).Source(source.Path("a/b"))} {
		path, ok := source.LocalPath(s)
		require.True(t, ok)
		require.Equal(t, "a/b", path)
	}
	for _, s := range []source.Source{source.FS(fstest.MapFS{}, "a/b"), source.NewPool(1).Source(source.FS(fstest.MapFS{}, "a/b"))} {
		_, ok := source.LocalPath(s)
		require.False(t, ok)
	}
}
