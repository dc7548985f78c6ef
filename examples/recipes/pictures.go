package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
)

// pictures is a dataset of pictures of 8×8 in a folder for each class: cats/1.png, dogs/7.png.
func pictures(fsys fs.FS) (data loader.Dataset, classes []string) {
	files, err := source.GlobFS(fsys, "*/*.png") // source.Glob for a folder on a disk
	check(err)
	for _, f := range files {
		classes = append(classes, path.Dir(f.Name()))
	}
	classes = slices.Compact(classes) // files are sorted by their names
	fields := []loader.Field{{Name: "image", DType: dtype.Uint8, Shape: []int{8, 8, 4}}, {Name: "label", DType: dtype.Int64}}
	return loader.FromFunc(len(files), fields, func(ctx context.Context, i int, row *loader.Row) error {
		f, err := files[i].Open(ctx)
		if err != nil {
			return err
		}
		defer f.Close()
		picture, err := png.Decode(io.NewSectionReader(source.ReaderAt(ctx, f), 0, f.Size()))
		if err != nil || picture.Bounds().Size() != image.Pt(8, 8) {
			return errors.Join(err, fmt.Errorf("%s is no PNG of 8×8", f.Name()))
		}
		rgba := image.RGBA{Pix: row.Bytes("image"), Stride: 4 * 8, Rect: image.Rect(0, 0, 8, 8)}
		draw.Draw(&rgba, rgba.Rect, picture, picture.Bounds().Min, draw.Src)
		return loader.Write(row, "label", int64(slices.Index(classes, path.Dir(f.Name()))))
	}), classes
}
