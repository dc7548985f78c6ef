package whole_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/internal/whole"
)

func names(t *testing.T, directory string) (all []string) {
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestAFileIsWholeOrAbsent(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	f, err := whole.Create(path)
	require.NoError(t, err)
	_, err = f.WriteString("half")
	require.NoError(t, err)
	require.NoFileExists(t, path)
	require.Len(t, names(t, directory), 1)
	require.NoError(t, f.Discard())
	require.Empty(t, names(t, directory))

	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	f, err = whole.Create(path)
	require.NoError(t, err)
	_, err = f.WriteString("new")
	require.NoError(t, err)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
	require.NoError(t, f.Place())
	b, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
	require.Equal(t, []string{"file"}, names(t, directory))
}

// A name that is taken by a folder can't be given, and nothing is left of the file.
func TestAFileThatCannotBePutInPlace(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	f, err := whole.Create(path)
	require.NoError(t, err)
	require.Error(t, f.Place())
	require.Equal(t, []string{"file"}, names(t, directory))
	_, err = whole.Create(filepath.Join(directory, "nowhere", "file"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// What killed processes have left is removed when it is a day old, and only that.
func TestOldRestsAreRemoved(t *testing.T) {
	directory := t.TempDir()
	for name, age := range map[string]time.Duration{
		"file.1" + whole.Building: 23 * time.Hour, "file.2" + whole.Building: 25 * time.Hour,
		"file.old": 48 * time.Hour, "other.1" + whole.Building: 48 * time.Hour, "file": 48 * time.Hour,
	} {
		path := filepath.Join(directory, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	f, err := whole.Create(filepath.Join(directory, "file"))
	require.NoError(t, err)
	require.NoError(t, f.Place())
	require.Equal(t, []string{"file", "file.1" + whole.Building, "file.old", "other.1" + whole.Building}, names(t, directory))
}
