// Package whole makes files that are whole or absent: a file is built under another name
// beside its own, and gets that when it is done. Nothing has to be cleaned up behind a process
// that was killed, and several may build one file at once: the last to finish puts its own in
// place.
package whole

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Building is the end of the name of a file that is not whole.
const Building = ".building"

// abandoned is the age from which a file that is not whole is taken for one whose process
// was killed, where nothing else tells.
const abandoned = 24 * time.Hour

// File is one that is built. It ends with Place or Discard.
type File struct {
	*os.File
	path   string
	locked bool // until it is closed; see lock
}

// Create begins a file of that path. What killed processes have left of it is removed first:
// files whose lock is free, or where there are no locks old ones.
func Create(path string) (*File, error) {
	directory, name := filepath.Split(path)
	if directory == "" {
		directory = "."
	}
	removeAbandoned(directory, name)
	if here := machine(); here != "" {
		if f, err := createLocked(directory, name+"."+here+".*"+Building); f != nil || err != nil {
			return f.of(path), err
		}
	}
	f, err := os.CreateTemp(directory, name+".*"+Building)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: path}, nil
}

// of is f with the path that it is to get.
func (f *File) of(path string) *File {
	if f != nil {
		f.path = path
	}
	return f
}

// createLocked makes a file of a pattern and takes its lock. It is nil if there are no locks.
func createLocked(directory, pattern string) (*File, error) {
	for {
		f, err := os.CreateTemp(directory, pattern)
		if err != nil {
			return nil, err
		}
		free, err := lock(f)
		switch {
		case err != nil:
			f.Close()
			return nil, os.Remove(f.Name())
		case free && isThere(f):
			return &File{File: f, locked: true}, nil
		}
		// Another process came between, and has removed it for one that nobody builds.
		f.Close()
	}
}

// isThere reports whether the file has its name.
func isThere(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(open, named)
}

// removeAbandoned removes what killed processes have left. They are in nobody's way, and
// only take room: failures are of no importance.
func removeAbandoned(directory, name string) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return
	}
	here := machine()
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), name+".") || !strings.HasSuffix(e.Name(), Building) {
			continue
		}
		path := filepath.Join(directory, e.Name())
		if here != "" && strings.Contains(e.Name(), "."+here+".") && removeUnlocked(path) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			os.Remove(path)
		}
	}
}

// removeUnlocked removes a file of this machine that no process builds any more. It is false
// if that can't be told.
func removeUnlocked(path string) (told bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // some file systems lock no file that is only read
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	free, err := lock(f)
	if free && isThere(f) {
		os.Remove(path)
	}
	return err == nil
}

// Place gives the file its name. It is on the disk before, so that a machine that stops leaves
// no whole file without contents. If that fails the file is removed.
func (f *File) Place() error {
	err := f.Sync()
	if !f.locked { // where there are no locks, some systems rename no file that is open
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	if f.locked {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Discard removes the file.
func (f *File) Discard() error {
	err := f.Close()
	if gone := os.Remove(f.Name()); !f.locked || !errors.Is(gone, fs.ErrNotExist) { // its lock was free
		err = errors.Join(err, gone)
	}
	return err
}

// Lock takes the lock of a file until that is closed, or its process ends. free is false if
// another has it; the error is that of a system or a file system without locks.
func Lock(f *os.File) (free bool, err error) { return lock(f) }
