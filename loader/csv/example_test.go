package csv_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

// The header is sepal length,sepal width,species,note.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/excel.csv")
	if err != nil {
		log.Fatal(err)
	}
	data, err := csv.Open(ctx, files, []csv.Column{
		{Field: loader.Field{Name: "sepal", DType: dtype.Float32, Shape: []int{2}}, From: "sepal length"},
		{Field: loader.Field{Name: "species", DType: dtype.Int64}, Categories: []string{"setosa", "versicolor", "virginica"}},
	}, csv.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 3, loader.Options{Epochs: 1})
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
		sepal, err := prefetch.Column[float32](batch, "sepal")
		if err != nil {
			log.Fatal(err)
		}
		species, err := prefetch.Column[int64](batch, "species")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(sepal, species)
	}
	// Output:
	// [5.1 3.5 7 3.2 6.3 3.3] [0 1 2]
	// [4.9 3 0.001 -2.5] [0 2]
}
