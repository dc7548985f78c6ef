package found

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/cifar"
	"github.com/leat-go/leat/loader/idx"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/safetensors"
	"github.com/leat-go/leat/loader/source"
)

func openNPY(ctx context.Context, s *Set, _ Options) error {
	data, err := npy.Open(ctx, s.Files, npy.Options{})
	if err != nil {
		return err
	}
	s.code = code{
		imports: []string{"loader/source", "loader/npy"}, close: true,
		lines: s.files() + "data, err := npy.Open(ctx, files, npy.Options{})\ncheck",
	}
	return s.opened(data, data.Close)
}

func openSafetensors(ctx context.Context, s *Set, _ Options) error {
	data, err := safetensors.Open(ctx, s.Files, safetensors.Options{})
	if err != nil {
		return err
	}
	s.code = code{
		imports: []string{"loader/source", "loader/safetensors"}, close: true,
		lines: s.files() + "data, err := safetensors.Open(ctx, files, safetensors.Options{})\ncheck",
	}
	return s.opened(data, data.Close)
}

func openCIFAR(ctx context.Context, s *Set, _ Options) error {
	if of := trainingFiles(s.Files); len(of) < len(s.Files) {
		s.note("of %d files those of training are opened; for the others: leat inspect %s", len(s.Files), without(s.Files, of))
		s.Files = of
	}
	data, err := cifar.Open(ctx, s.Files, cifar.Options{})
	if err != nil {
		return err
	}
	s.code = code{
		imports: []string{"loader/source", "loader/cifar"}, close: true,
		lines: s.files() + "data, err := cifar.Open(ctx, files, cifar.Options{})\ncheck",
	}
	return s.opened(data, data.Close)
}

// trainingFiles are files without those of a test, if there are both.
func trainingFiles(files []source.Source) []source.Source {
	of := slices.DeleteFunc(slices.Clone(files), func(f source.Source) bool {
		name := strings.ToLower(filepath.Base(f.Name()))
		return strings.HasPrefix(name, "test") || strings.HasPrefix(name, "t10k")
	})
	if len(of) == 0 {
		return files
	}
	return of
}

// without is the name of the first file that is not taken.
func without(files, taken []source.Source) string {
	for _, f := range files {
		if !slices.ContainsFunc(taken, func(t source.Source) bool { return t.Name() == f.Name() }) {
			return f.Name()
		}
	}
	return ""
}

// openIDX opens an array, with its labels if they are beside it under the name that those of
// MNIST and its kin have.
func openIDX(ctx context.Context, s *Set, _ Options) error {
	images := s.Files[0]
	for _, f := range trainingFiles(s.Files) {
		if strings.Contains(filepath.Base(f.Name()), "images") {
			images = f
			break
		}
	}
	path, _ := source.LocalPath(images)
	array, err := idx.Open(ctx, images)
	if err != nil {
		return err
	}
	open := fmt.Sprintf("images, err := idx.Open(ctx, source.Path(%q))\ncheck\n", path)
	labels := strings.NewReplacer("images", "labels", "idx3", "idx1").Replace(filepath.Base(path))
	beside := filepath.Join(filepath.Dir(path), labels)
	all := len(s.Files)
	s.Files = []source.Source{images}
	if _, err := os.Stat(beside); err == nil && beside != path {
		s.Files = append(s.Files, source.Path(beside))
		numbers, err := idx.Open(ctx, source.Path(beside))
		if err != nil {
			return err
		}
		data, err := idx.Dataset(array, numbers)
		if err != nil {
			return err
		}
		s.code = code{
			imports: []string{"loader/source", "loader/idx"},
			lines:   open + fmt.Sprintf("labels, err := idx.Open(ctx, source.Path(%q))\ncheck\ndata, err := idx.Dataset(images, labels)\ncheck", beside),
		}
		if all > 2 {
			s.note("of %d files %s and %s are opened; name another to see it", all, filepath.Base(path), labels)
		}
		return s.opened(data, nil)
	}
	if all > 1 {
		s.note("of %d files %s is opened; name another to see it", all, filepath.Base(path))
	}
	data := alone(array)
	s.code = code{
		imports: []string{"loader/source", "loader/idx"},
		lines: open + `row := len(images.Data) / images.Shape[0]
fields := []loader.Field{{Name: "data", DType: images.DType, Shape: images.Shape[1:]}}
data := loader.FromFunc(images.Shape[0], fields, func(_ context.Context, i int, to *loader.Row) error {
	copy(to.Bytes("data"), images.Data[i*row:])
	return nil
})`,
	}
	return s.opened(data, nil)
}

// alone is the rows of an array as a dataset.
func alone(a *idx.Array) loader.Dataset {
	n := a.Shape[0]
	fields := []loader.Field{{Name: "data", DType: a.DType, Shape: a.Shape[1:]}}
	return loader.FromFunc(n, fields, func(_ context.Context, i int, row *loader.Row) error {
		size := len(a.Data) / n
		copy(row.Bytes("data"), a.Data[i*size:])
		return nil
	})
}
