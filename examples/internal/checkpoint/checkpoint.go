// Package checkpoint saves a model and the place in its data together: whoever loads them
// has both of one step, however the process that saved them ended.
//
// The model goes first, to a file with its place in the name, and then the loader.State, to the
// file that has the name which was asked for. So the State never tells of a model that is not
// there whole, and the model of the State before it is there until the new State is.
package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/statefile"
)

// A DamagedError is a model whose bytes are not those that were saved.
type DamagedError struct {
	Path string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("checkpoint: %s is not what was saved: its checksum is wrong", e.Path)
}

var table = crc32.MakeTable(crc32.Castagnoli)

// modelOf is the file of the model that belongs to a State.
func modelOf(path string, s loader.State) string {
	return fmt.Sprintf("%s.model-%d-%d", path, s.Epoch, s.Position)
}

// Save writes the model and the State, and removes the model of the State before it. The files
// lie beside each other; one process at a time writes them.
func Save(path string, s loader.State, model []byte) error {
	file := modelOf(path, s)
	if err := write(file, model); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := statefile.Save(path, s); err != nil {
		return err
	}
	others, err := filepath.Glob(escape(path) + ".model-*")
	for _, other := range others {
		if other != file {
			err = errors.Join(err, os.Remove(other))
		}
	}
	return err
}

// escape is a path as a pattern that matches itself alone.
func escape(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

// write writes a file that is whole or absent, and behind the bytes their checksum.
func write(path string, b []byte) (err error) {
	f, err := os.Create(path + ".new") // of a process that was killed it is overwritten
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		_, err = fmt.Fprintf(f, "%08x", crc32.Checksum(b, table))
	}
	if err == nil {
		err = f.Sync() // before it has its name, or a machine that stops leaves an empty file
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return os.Rename(path+".new", path)
}

// Load reads what Save has written. Where nothing was saved the error wraps fs.ErrNotExist.
func Load(path string) (s loader.State, model []byte, err error) {
	if s, err = statefile.Load(path); err != nil {
		return s, nil, err
	}
	file := modelOf(path, s)
	b, err := os.ReadFile(file)
	if err != nil {
		// Not fs.ErrNotExist, which would begin again at the beginning.
		return s, nil, fmt.Errorf("checkpoint: the state in %s has no model beside it: %v", path, err)
	}
	if len(b) < 8 || fmt.Sprintf("%08x", crc32.Checksum(b[:len(b)-8], table)) != string(b[len(b)-8:]) {
		return s, nil, &DamagedError{Path: file}
	}
	return s, b[:len(b)-8], nil
}
