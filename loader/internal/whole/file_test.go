package whole_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
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

// What a process that was killed has left is removed by the next that builds the file, and
// not what others are building. TestKilled is the process.
func TestRestsOfKilledProcessesAreRemoved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere only the age of a file tells")
	}
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	living, err := whole.Create(path)
	require.NoError(t, err)
	for range 5 {
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), killedPath+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "created\n", line)
		require.Len(t, names(t, directory), 2)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())
	}
	next, err := whole.Create(path)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{filepath.Base(living.Name()), filepath.Base(next.Name())}, names(t, directory))
	require.NoError(t, living.Place())
	require.NoError(t, next.Discard())
	require.Equal(t, []string{"file"}, names(t, directory))
}

const killedPath = "LEAT_TEST_WHOLE"

func TestKilled(t *testing.T) {
	path := os.Getenv(killedPath)
	if path == "" {
		t.Skip("it is run by a test of several processes")
	}
	_, err := whole.Create(path)
	require.NoError(t, err)
	fmt.Println("created")
	select {}
}

// Builders that begin while others do, and end, take none for one that was killed.
func TestManyBuildAtOnce(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "file")
	var building sync.WaitGroup
	for i := range 4 {
		building.Go(func() {
			for k := range 100 {
				f, err := whole.Create(path)
				if err == nil {
					_, err = f.WriteString("whole")
				}
				if err == nil && (i+k)%4 == 0 {
					err = f.Discard()
				} else if err == nil {
					err = f.Place()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	building.Wait()
	require.Equal(t, []string{"file"}, names(t, directory))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(b))
}
