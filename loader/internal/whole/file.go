// Package whole makes files that are whole or absent: a file is built under another name
// beside its own, and gets that when it is done. Nothing has to be cleaned up behind a process
// that was killed, and several may build one file at once: the last to finish puts its own in
// place.
package whole

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Building is the end of the name of a file that is not whole.
const Building = ".building"

// abandoned is the age from which a file that is not whole is taken for one whose process
// was killed.
const abandoned = 24 * time.Hour

// File is one that is built. It ends with Place or Discard.
type File struct {
	*os.File
	path string
}

// Create begins a file of that path.
func Create(path string) (*File, error) {
	directory, name := filepath.Split(path)
	if directory == "" {
		directory = "."
	}
	removeAbandoned(directory, name)
	f, err := os.CreateTemp(directory, name+".*"+Building)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// removeAbandoned removes what killed processes have left. They are in nobody's way, and
// only take room: failures are of no importance.
func removeAbandoned(directory, name string) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+".") || !strings.HasSuffix(e.Name(), Building) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			os.Remove(filepath.Join(directory, e.Name()))
		}
	}
}

// Place gives the file its name. It is on the disk before, so that a machine that stops leaves
// no whole file without contents. If that fails the file is removed.
func (f *File) Place() error {
	err := f.Sync()
	// Some systems rename no file that is open.
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Discard removes the file.
func (f *File) Discard() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
