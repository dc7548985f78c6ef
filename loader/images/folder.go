package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// MissingError is a folder without what makes it a folder of pictures.
type MissingError struct {
	// Folder is its path.
	Folder string
	// Empty are the classes without a picture. If there are none, the folder has no classes.
	Empty []string
	// Stray is how many files there are that are no pictures of a class, and First the first
	// of them.
	Stray int
	First string
}

// Error implements error.
func (e *MissingError) Error() string {
	text := fmt.Sprintf("images: %s has no folders in it, want one for each class", e.Folder)
	if len(e.Empty) > 0 {
		text = fmt.Sprintf("images: %s: no picture of %d classes, the first is %s", e.Folder, len(e.Empty), e.Empty[0])
	}
	if e.Stray > 0 {
		text += fmt.Sprintf("; %d other files, the first is %s", e.Stray, e.First)
	}
	return text
}

// maxDepth is how deep folders of a class may lie in each other.
const maxDepth = 64

// folder is what was found in one.
type folder struct {
	path     string
	tree     fs.FS
	suffixes []string
	names    []string // of the pictures, from the root on, class by class
	stray    []string // the first of the others
	strays   int
}

// mostStray is how many names of stray files a Plan has.
const mostStray = 100

// classes finds the folders and the pictures in them. given are the classes if they are stated. It
// returns the classes and, for each, how many pictures there are up to its end.
func (f *folder) classes(ctx context.Context, given []string) (classes []string, ends []int, err error) {
	entries, err := fs.ReadDir(f.tree, ".")
	if err != nil {
		return nil, nil, f.failed(".", err)
	}
	for _, e := range entries {
		if hidden(e.Name()) {
			continue
		}
		mode, err := f.mode(e, e.Name())
		if err != nil {
			return nil, nil, err
		}
		if !mode.IsDir() {
			f.addStray(e.Name())
			continue
		}
		if given != nil && !slices.Contains(given, e.Name()) {
			return nil, nil, &loader.OptionError{Package: "images", Option: "Classes", Value: given, Want: fmt.Sprintf("one for each folder, %s too", path.Join(f.path, e.Name()))}
		}
		classes = append(classes, e.Name())
	}
	slices.Sort(classes)
	found, all := classes, classes
	if given != nil {
		all = given
	}
	var empty []string
	for _, class := range all {
		if slices.Contains(found, class) {
			before := len(f.names)
			if err := f.walk(ctx, class, nil); err != nil {
				return nil, nil, err
			}
			slices.Sort(f.names[before:])
			if len(f.names) == before {
				empty = append(empty, class)
			}
		}
		ends = append(ends, len(f.names))
	}
	if len(empty) > 0 || len(found) == 0 {
		e := &MissingError{Folder: f.path, Empty: empty, Stray: f.strays}
		if f.strays > 0 {
			e.First = f.stray[0]
		}
		return nil, nil, e
	}
	return all, ends, nil
}

// walk adds the pictures of a folder and of those in it. above are the folders that it is in.
func (f *folder) walk(ctx context.Context, name string, above []fs.FileInfo) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	// A link may lead to a folder that it is in.
	info, err := fs.Stat(f.tree, name)
	if err != nil {
		return f.failed(name, err)
	}
	for _, a := range above {
		if os.SameFile(a, info) {
			return nil
		}
	}
	if len(above) == maxDepth {
		return fmt.Errorf("images: %s: more than %d folders in each other", path.Join(f.path, name), maxDepth)
	}
	entries, err := fs.ReadDir(f.tree, name)
	if err != nil {
		return f.failed(name, err)
	}
	for _, e := range entries {
		inner := path.Join(name, e.Name())
		if hidden(e.Name()) {
			continue
		}
		mode, err := f.mode(e, inner)
		switch {
		case err != nil:
			return err
		case mode.IsDir():
			if err := f.walk(ctx, inner, append(above[:len(above):len(above)], info)); err != nil {
				return err
			}
		case mode.IsRegular() && f.isPicture(e.Name()):
			f.names = append(f.names, inner)
		default:
			f.addStray(inner)
		}
	}
	return nil
}

// failed is what was wrong with a folder, by its whole path: f.tree knows only what is below its root.
func (f *folder) failed(name string, err error) error {
	if inner, ok := err.(*fs.PathError); ok {
		err = inner.Err
	}
	return &source.Error{Source: path.Join(f.path, name), Op: "read", Offset: -1, Err: err}
}

// mode is the kind of an entry, or of what it links to. A link that leads nowhere is as a
// file: if it has a picture's name, reading it fails.
func (f *folder) mode(e fs.DirEntry, name string) (fs.FileMode, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.Type(), nil
	}
	info, err := fs.Stat(f.tree, name)
	if err != nil {
		return 0, nil
	}
	return info.Mode().Type(), nil
}

func (f *folder) isPicture(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(f.suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

func (f *folder) addStray(name string) {
	if f.strays++; len(f.stray) < mostStray {
		f.stray = append(f.stray, name)
	}
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }
