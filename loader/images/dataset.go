package images

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/source"
)

// Dataset is the pictures of a folder, class by class and sorted by the bytes of their paths. It
// is a loader.Dataset, a loader.Fingerprinter and a loader.Locator. Its methods may be
// called by several goroutines at once. It keeps no file open.
type Dataset struct {
	folder  folder
	file    func(name string) source.Source
	drawer  *Drawer
	classes []string
	ends    []int // how many pictures there are up to the end of each class
	sum     uint64
}

// Open looks for the pictures in a folder. Each folder in it is a class, whose label is its
// number among their names sorted by their bytes, and has at least one picture in it or in
// folders below. Links are followed, what begins with a point is left out, and so are files
// that have no picture's name: Plan tells them.
//
// The error is a *MissingError for a folder without classes or a class without pictures,
// a *loader.OptionError for each mistake in the options, joined, or a *source.Error for a folder
// that can't be read.
func Open(ctx context.Context, path string, o Options) (*Dataset, error) {
	return open(ctx, path, os.DirFS(path), func(name string) source.Source {
		return source.Path(filepath.Join(path, filepath.FromSlash(name)))
	}, o)
}

// OpenFS is Open for the root of an fs.FS.
func OpenFS(ctx context.Context, fsys fs.FS, o Options) (*Dataset, error) {
	return open(ctx, ".", fsys, func(name string) source.Source { return source.FS(fsys, name) }, o)
}

func open(ctx context.Context, path string, tree fs.FS, file func(string) source.Source, o Options) (*Dataset, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	d := &Dataset{folder: folder{path: path, tree: tree, suffixes: o.Suffixes}, file: file, drawer: newDrawer(o)}
	if d.classes, d.ends, err = d.folder.classes(ctx, o.Classes); err != nil {
		return nil, err
	}
	files := make([]source.Source, d.Len())
	for i, name := range d.folder.names {
		files[i] = file(name)
	}
	if d.sum, err = source.Fingerprint(ctx, files); err != nil {
		return nil, err
	}
	h := fnv.New64a()
	for _, class := range d.classes {
		fmt.Fprintf(h, "%q", class)
	}
	flags := uint64(0)
	for i, set := range []bool{o.Gray, o.Upright} {
		if set {
			flags |= 1 << i
		}
	}
	d.sum = mix.Hash(d.sum, h.Sum64(), uint64(o.Height), uint64(o.Width), flags, math.Float64bits(o.Flip))
	return d, nil
}

// Len is the number of pictures.
func (d *Dataset) Len() int { return len(d.folder.names) }

// Classes are the names of the classes, by label. They are borrowed.
func (d *Dataset) Classes() []string { return d.classes }

// Fields are "image" and "label".
func (d *Dataset) Fields() []loader.Field {
	return []loader.Field{d.drawer.Field("image"), {Name: "label", DType: dtype.Int32}}
}

// Fingerprint tells the pictures from others by their paths below the folder and their sizes,
// and by the options that are no functions or interfaces.
func (d *Dataset) Fingerprint() uint64 { return d.sum }

// Origin is the file of a picture.
func (d *Dataset) Origin(index int) loader.Origin {
	return loader.Origin{File: d.file(d.folder.names[index]).Name()}
}

// Label is that of a picture.
func (d *Dataset) Label(index int) int {
	label, _ := slices.BinarySearch(d.ends, index+1) // the first class that ends behind it
	return label
}

// Read draws a picture. The error is a *source.Error for a file that can't be read and a
// *source.FormatError for what is no picture, is broken or is too large.
func (d *Dataset) Read(ctx context.Context, index int, row *loader.Row) error {
	p := d.drawer.scratch.Get().(*pixels)
	defer d.drawer.scratch.Put(p)
	s := d.file(d.folder.names[index])
	if err := d.load(ctx, s, p); err != nil {
		return err
	}
	if err := d.drawer.draw(row, "image", s.Name(), p.file, p); err != nil {
		return err
	}
	return loader.Write(row, "label", int32(d.Label(index)))
}

// load reads a file.
func (d *Dataset) load(ctx context.Context, s source.Source, p *pixels) error {
	f, err := s.Open(ctx)
	if err != nil {
		return err
	}
	if most := d.drawer.options.MaxBytes; f.Size() > most {
		return errors.Join(&source.FormatError{
			Format: "images", File: s.Name(), Offset: -1, Record: -1,
			Want: fmt.Sprintf("a file of at most %d bytes", most), Got: fmt.Sprintf("%d", f.Size()),
		}, f.Close())
	}
	p.file = slices.Grow(p.file[:0], int(f.Size()))[:f.Size()]
	return errors.Join(source.ReadFull(ctx, f, p.file, 0), f.Close())
}
