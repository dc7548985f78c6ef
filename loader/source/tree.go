package source

import (
	"io/fs"
	"os"
)

// osTree is the files of the operating system.
type osTree struct{}

func (osTree) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(orPoint(name)) }
func (osTree) Stat(name string) (fs.FileInfo, error)      { return os.Stat(orPoint(name)) }

// fsTree is the files of an fs.FS.
type fsTree struct{ fsys fs.FS }

func (t fsTree) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(t.fsys, orPoint(name)) }
func (t fsTree) Stat(name string) (fs.FileInfo, error)      { return fs.Stat(t.fsys, orPoint(name)) }

// orPoint is the name of the folder that names without one are in.
func orPoint(name string) string {
	if name == "" {
		return "."
	}
	return name
}
