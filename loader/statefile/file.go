package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/leat-go/leat/loader"
)

// Error is a file, or a folder of files, that a State can't be read from or written to.
type Error struct {
	// Path is the file or the folder.
	Path string
	// Err is the cause: fs.ErrNotExist where there is none, a *loader.StateError where
	// the file holds no State.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	err := e.Err
	var path *os.PathError
	if errors.As(err, &path) && path.Path == e.Path {
		err = path.Err // which would say the path again
	}
	return fmt.Sprintf("statefile: %s: %v", e.Path, err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Save writes a State to a file, in place of what is there. Whoever reads the file finds the
// old State or the new one, whole, also if this process is killed meanwhile or the machine
// stops; then a file of another name may be left beside it, which ends in .new. The error is
// an *Error.
func Save(path string, s loader.State) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = replace(path, append(text, '\n'))
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return &Error{Path: path, Err: err}
	}
	return nil
}

// replace writes a file under another name first.
func replace(path string, text []byte) (err error) {
	folder, name := filepath.Split(path)
	if folder == "" {
		folder = "."
	}
	f, err := os.CreateTemp(folder, name+".*.new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync() // before it has its name, or a machine that stops leaves an empty file
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// syncFolder has the new name reach the disk too.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // it has no call for that
	}
	d, err := os.Open(folder)
	if err != nil {
		return nil // the name is there; a folder that can't be read can't be told to last
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load reads a State that Save has written. The error is an *Error: fs.ErrNotExist is found
// in it where there is no such file, for a run that begins at the beginning.
func Load(path string) (loader.State, error) {
	text, err := os.ReadFile(path)
	var s loader.State
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil && s.Equal(loader.State{}) {
		err = &loader.StateError{Field: "file", Got: string(text), Want: "a State"}
	}
	if err != nil {
		return loader.State{}, &Error{Path: path, Err: err}
	}
	return s, nil
}
