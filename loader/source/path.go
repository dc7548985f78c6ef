package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Path is a regular file of the operating system. A relative path begins at the folder
// that is the current one when the file is opened.
func Path(path string) Source { return file(path) }

// file is a path.
type file string

// Name implements Source.
func (f file) Name() string { return string(f) }

// Stat implements Stater.
func (f file) Stat(ctx context.Context) (Info, error) {
	if err := begun(ctx, opStat, f.Name()); err != nil {
		return Info{}, err
	}
	return f.stat(opStat)
}

func (f file) stat(op string) (Info, error) {
	if f == "" {
		return Info{}, failed(op, `""`, errNoName)
	}
	stat, err := os.Stat(f.Name())
	if err == nil {
		err = irregular(stat.Mode())
	}
	if err != nil {
		return Info{}, failed(op, f.Name(), err)
	}
	return infoOf(stat), nil
}

// Open implements Source.
func (f file) Open(ctx context.Context) (File, error) {
	opened, info, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	return NewFile(f.Name(), info, readsAt(opened), opened.Close), nil
}

// open opens the file, and says what it is.
func (f file) open(ctx context.Context) (*os.File, Info, error) {
	if err := begun(ctx, opOpen, f.Name()); err != nil {
		return nil, Info{}, err
	}
	// First, because to open a named pipe is to wait for whoever writes to it.
	if _, err := f.stat(opOpen); err != nil {
		return nil, Info{}, err
	}
	opened, err := os.Open(f.Name())
	if err != nil {
		return nil, Info{}, failed(opOpen, f.Name(), err)
	}
	stat, err := opened.Stat()
	if err == nil {
		err = irregular(stat.Mode())
	}
	if err != nil {
		_ = opened.Close()
		return nil, Info{}, failed(opOpen, f.Name(), err)
	}
	return opened, infoOf(stat), nil
}

// List is Path for each of the paths, in their order. Its error joins one for each path
// that is empty, or is there twice: "a/b" and "a/./b" are the same. Whether the files
// exist shows when they are opened.
func List(paths ...string) ([]Source, error) {
	var errs []error
	sources := make([]Source, 0, len(paths))
	first := make(map[string]int, len(paths))
	for i, path := range paths {
		clean := filepath.Clean(path)
		earlier, twice := first[clean]
		switch {
		case path == "":
			errs = append(errs, fmt.Errorf("source: path %d of %d: %w", i, len(paths), errNoName))
		case twice:
			errs = append(errs, fmt.Errorf("source: path %d of %d, %s, is path %d again", i, len(paths), path, earlier))
		default:
			first[clean] = i
			sources = append(sources, Path(path))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return sources, nil
}
