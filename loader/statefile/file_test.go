package statefile_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/statefile"
)

// at is the State of a loader of 1000 samples behind some of them.
func at(t *testing.T, position int64) loader.State {
	t.Helper()
	ld, err := loader.New(loader.FromFunc(1000, []loader.Field{{Name: "x", DType: dtype.Int64}},
		func(_ context.Context, i int, row *loader.Row) error { return loader.Write(row, "x", int64(i)) }), 1, loader.Options{Seed: 3})
	require.NoError(t, err)
	return ld.StateAt(loader.Cursor{Position: position})
}

func TestWhatIsSavedIsLoaded(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "state.json")
	_, err := statefile.Load(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "statefile: "+path+": no such file or directory")
	for _, position := range []int64{7, 8} {
		require.NoError(t, statefile.Save(path, at(t, position)))
		s, err := statefile.Load(path)
		require.NoError(t, err)
		require.True(t, s.Equal(at(t, position)))
	}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")

	if runtime.GOOS != "windows" { // the new file is made beside the old one, and nowhere else
		gone := t.TempDir()
		t.Chdir(gone)
		require.NoError(t, os.Remove(gone))
		t.Setenv("TMPDIR", gone)
		require.NoError(t, statefile.Save(path, at(t, 8)))
	}
	t.Chdir(folder)
	require.NoError(t, statefile.Save("other.json", at(t, 9)), "in the current folder")
	s, err := statefile.Load(filepath.Join(folder, "other.json"))
	require.NoError(t, err)
	require.EqualValues(t, 9, s.Position)
}

func TestAFileThatIsNoState(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"empty": "", "null": "null", "cut": `{"version":`, "other": `{"a":1}`, "list": "[]"} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := statefile.Load(path)
		var where *statefile.Error
		require.ErrorAs(t, err, &where, name)
		require.Equal(t, path, where.Path)
		require.True(t, s.Equal(loader.State{}))
	}
	var where *statefile.Error
	missing := filepath.Join(folder, "none", "state.json")
	require.ErrorAs(t, statefile.Save(missing, at(t, 1)), &where)
	require.Equal(t, missing, where.Path)
	require.ErrorIs(t, where, fs.ErrNotExist)
	require.ErrorContains(t, where, ".new: no such file", "it names the file that could not be made")
	require.Error(t, statefile.Save(folder, at(t, 1)), "a folder is no file")
	entries, err := os.ReadDir(filepath.Dir(folder))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of what failed")
}

// Whoever loads while others save, of this process or of more, finds a whole State.
func TestSavingAndLoadingAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	states := []loader.State{at(t, 1), at(t, 999)}
	require.NoError(t, statefile.Save(path, states[0]))
	var saving sync.WaitGroup
	for _, s := range states {
		saving.Go(func() {
			for range 20 {
				if err := statefile.Save(path, s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		s, err := statefile.Load(path)
		require.NoError(t, err)
		require.Contains(t, states, s)
	}
	saving.Wait()
}

// A process that is killed at any moment leaves the old State or the new one.
func TestAKilledSave(t *testing.T) {
	if path := os.Getenv("LEAT_SAVE_STATES"); path != "" {
		position := int64(1)
		for began := time.Now(); time.Since(began) < time.Minute; position = position%999 + 1 {
			require.NoError(t, statefile.Save(path, at(t, position)))
		}
		return
	}
	path := filepath.Join(t.TempDir(), "state.json")
	for i := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAKilledSave$")
		cmd.Env = append(os.Environ(), "LEAT_SAVE_STATES="+path)
		require.NoError(t, cmd.Start())
		for { // until it is in the middle of its work
			if _, err := os.Stat(path); err == nil {
				break
			} else if !errors.Is(err, fs.ErrNotExist) {
				require.NoError(t, err)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		require.Error(t, cmd.Wait())
		s, err := statefile.Load(path)
		require.NoError(t, err)
		require.Positive(t, s.Position)
	}
}
