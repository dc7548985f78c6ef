package tar_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tar"
	"github.com/leat-go/leat/prefetch"
)

func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/web*.tar")
	if err != nil {
		log.Fatal(err)
	}
	shards, err := tar.Open(ctx, files, tar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer shards.Close()
	data := shards.Dataset([]loader.Field{{Name: "label", DType: dtype.Int64}}, func(_ context.Context, s *tar.Sample, row *loader.Row) error {
		label, err := s.Int("cls")
		if err != nil {
			return err
		}
		return loader.Write(row, "label", label)
	})
	ld, err := loader.New(data, 5, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	for batch, err := range pf.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		labels, err := prefetch.Column[int64](batch, "label")
		fmt.Println(labels, err)
	}
	// Output: [0 1 2 3 4] <nil>
}
