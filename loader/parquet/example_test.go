package parquet_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/parquet"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/rows-zstd.parquet")
	if err != nil {
		log.Fatal(err)
	}
	table, err := parquet.Open(ctx, files, parquet.Options{Columns: []string{"id", "pair"}})
	if err != nil {
		log.Fatal(err)
	}
	defer table.Close()
	data := table.Dataset([]loader.Field{
		{Name: "id", DType: dtype.Int64},
		{Name: "pair", DType: dtype.Int32, Shape: []int{2}},
	}, nil)
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
		ids, err := prefetch.Column[int64](batch, "id")
		fmt.Println(ids, err)
	}
	// Output:
	// [0 -1 -2 -3 -4] <nil>
	// [-5 -6 -7 -8 -9] <nil>
}
