package mnist

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/source"
)

func TestFindInModuleCache(t *testing.T) {
	f := find(t)
	for _, path := range []string{f.TrainImages, f.TrainLabels, f.TestImages, f.TestLabels} {
		require.FileExists(t, path)
	}
}

func TestFindPlainAndRepacked(t *testing.T) {
	f := find(t)
	dir := t.TempDir()
	unpack(t, f.TestImages, filepath.Join(dir, known[2].name))
	repack(t, f.TestLabels, filepath.Join(dir, known[3].name+".gz"))
	for i, path := range []string{f.TrainImages, f.TrainLabels} {
		contents, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, known[i].name+".gz"), contents, 0o666))
	}
	got, err := Find(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "t10k-images-idx3-ubyte"), got.TestImages)
	require.Equal(t, filepath.Join(dir, "t10k-labels-idx1-ubyte.gz"), got.TestLabels)
}

func TestMissingFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, known[1].name), nil, 0o666))
	_, err := Find(t.Context(), dir)
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, []string{"train-images-idx3-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}, missing.Names)
	require.ErrorContains(t, err, "-data")
}

func TestOtherContentsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for i, f := range known {
		name, contents := f.name, []byte("not MNIST")
		if i == 2 {
			name += ".gz" // not a gzip file at all
		}
		if i == 3 {
			name, contents = name+".gz", pack(t, contents)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), contents, 0o666))
	}
	_, err := Find(t.Context(), dir)
	require.ErrorIs(t, err, ErrDigest)
	for _, f := range known {
		require.ErrorContains(t, err, f.name)
	}
	var format *source.FormatError
	require.ErrorAs(t, err, &format, "it says where the file goes wrong")
}

func TestNoGoCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(t.Context(), "")
	var module *ModuleError
	require.ErrorAs(t, err, &module)
	require.ErrorIs(t, err, exec.ErrNotFound)
	require.ErrorContains(t, err, "-data")
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Find(ctx, "")
	require.ErrorIs(t, err, context.Canceled)
}

// find is the real database, for the tests that can't do without.
func find(t *testing.T) Files {
	f, err := Find(t.Context(), "")
	if err != nil {
		t.Skipf("MNIST is not to be had: %v", err)
	}
	return f
}

func unpack(t *testing.T, from, to string) {
	in, err := os.Open(from)
	require.NoError(t, err)
	defer in.Close()
	r, err := gzip.NewReader(in)
	require.NoError(t, err)
	contents, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, contents, 0o666))
}

// repack writes the same contents in another packing.
func repack(t *testing.T, from, to string) {
	unpack(t, from, to)
	contents, err := os.ReadFile(to)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, pack(t, contents), 0o666))
}

func pack(t *testing.T, contents []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	require.NoError(t, err)
	_, err = w.Write(contents)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}
