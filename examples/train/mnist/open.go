package mnist

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/idx"
	"github.com/leat-go/leat/loader/source"
)

// Open finds the files as Find does and reads them into memory, 55 MB in all. A
// sample has the fields "image", uint8 [28, 28], and "label", a uint8 scalar.
func Open(ctx context.Context, dir string) (train, test loader.Dataset, err error) {
	files, err := Find(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	var g errgroup.Group
	g.Go(func() (err error) {
		train, err = read(ctx, files.TrainImages, files.TrainLabels)
		return err
	})
	g.Go(func() (err error) {
		test, err = read(ctx, files.TestImages, files.TestLabels)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func read(ctx context.Context, images, labels string) (loader.Dataset, error) {
	x, err := idx.Open(ctx, source.Path(images))
	if err != nil {
		return nil, err
	}
	y, err := idx.Open(ctx, source.Path(labels))
	if err != nil {
		return nil, err
	}
	return idx.Dataset(x, y)
}
