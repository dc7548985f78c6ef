package found

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader/source"
)

// An UnknownError is a path at which nothing was found that can be opened.
type UnknownError struct {
	Path string
	// Found counts the files of each format, if there are several.
	Found map[string]int
	// Why is what is known of it.
	Why string
}

// Error implements error.
func (e *UnknownError) Error() string {
	if len(e.Found) == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Why)
	}
	var counts []string
	for name, n := range e.Found {
		counts = append(counts, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(counts)
	return fmt.Sprintf("%s has files of several formats (%s): say which by a pattern or by the format", e.Path, strings.Join(counts, ", "))
}

// look finds the files at a path, and their format.
func look(ctx context.Context, path string, o Options) (*Set, error) {
	s := &Set{Path: path, Format: o.Format}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return s, s.folder(ctx, o)
	case err == nil:
		s.Files = []source.Source{source.Path(path)}
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?[{"):
		if s.Files, err = source.Glob(filepath.ToSlash(path)); err != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	return s, s.recognise(ctx, o)
}

// folder looks into a folder: for those formats that are a folder, and then for files.
func (s *Set) folder(ctx context.Context, o Options) error {
	for _, f := range formats {
		if f.folder != nil && (o.Format == "" || o.Format == f.name) && f.folder(s.Path) {
			s.Format = f.name
			return nil
		}
	}
	entries, err := os.ReadDir(s.Path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(s.Path, e.Name())
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			s.Files = append(s.Files, source.Path(path))
		}
	}
	return s.recognise(ctx, o)
}

// recognise tells the format by the files, and keeps those that have it.
func (s *Set) recognise(ctx context.Context, o Options) error {
	of := map[string][]source.Source{}
	why := "there are no files"
	for _, f := range s.Files {
		h, err := readHead(ctx, f)
		if err != nil {
			return err
		}
		name, reason := h.format(o.Format)
		if name == "" {
			why = fmt.Sprintf("the format of %s is none of %s", f.Name(), strings.Join(Formats(), ", "))
			if reason != "" {
				why = f.Name() + " is " + reason
			}
			continue
		}
		of[name] = append(of[name], f)
	}
	if len(of) == 0 {
		return &UnknownError{Path: s.Path, Why: why}
	}
	if len(of) > 1 {
		e := &UnknownError{Path: s.Path, Found: map[string]int{}}
		for name, files := range of {
			e.Found[name] = len(files)
		}
		return e
	}
	all := len(s.Files)
	for s.Format, s.Files = range of {
		if left := all - len(s.Files); left > 0 {
			s.note("%d other files are left out: %s", left, why)
		}
	}
	slices.SortFunc(s.Files, func(a, b source.Source) int { return cmp.Compare(a.Name(), b.Name()) })
	return nil
}
