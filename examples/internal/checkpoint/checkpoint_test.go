package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run[1].state")
	_, _, err := Load(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	for k, model := range []string{"first", "second", ""} {
		saved := loader.State{Version: 1, Samples: 10, Epoch: k, Position: 4}
		require.NoError(t, Save(path, saved, []byte(model)))
		s, got, err := Load(path)
		require.NoError(t, err)
		require.True(t, s.Equal(saved))
		require.Equal(t, model, string(got))
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 2, "the newest State and its model")
	}
}

// Killed between its two files, Save has left the checkpoint before whole.
func TestAModelWithoutItsStateIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := loader.State{Version: 1, Samples: 10, Position: 4}
	require.NoError(t, Save(path, first, []byte("first")))
	second := loader.State{Version: 1, Samples: 10, Position: 8}
	require.NoError(t, write(modelOf(path, second), []byte("second")))
	require.NoError(t, os.WriteFile(modelOf(path, second)+".new", []byte("sec"), 0o600))
	s, model, err := Load(path)
	require.NoError(t, err)
	require.True(t, s.Equal(first))
	require.Equal(t, "first", string(model))
}

func TestADamagedModelIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	s := loader.State{Version: 1, Samples: 10, Position: 4}
	require.NoError(t, Save(path, s, []byte("model")))
	b, err := os.ReadFile(modelOf(path, s))
	require.NoError(t, err)
	b[2] ^= 4
	require.NoError(t, os.WriteFile(modelOf(path, s), b, 0o600))
	_, _, err = Load(path)
	var damaged *DamagedError
	require.ErrorAs(t, err, &damaged)
	require.NoError(t, os.Remove(modelOf(path, s)))
	_, _, err = Load(path)
	require.ErrorContains(t, err, "no model beside it")
	require.NotErrorIs(t, err, fs.ErrNotExist)
	_, _, err = (&Options{Path: path, Resume: true}).Load()
	require.Error(t, err, "a checkpoint in part is not the beginning")
}
