package npy_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

// An archive's arrays are the fields of a sample.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/stored.npz")
	if err != nil {
		log.Fatal(err)
	}
	data, err := npy.Open(ctx, files, npy.Options{Arrays: []string{"turned", "label"}})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 4, loader.Options{Epochs: 1})
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
		turned, err := prefetch.Column[int16](batch, "turned")
		if err != nil {
			log.Fatal(err)
		}
		labels, err := prefetch.Column[int64](batch, "label")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Field("turned").Shape, turned, labels)
	}
	// Output:
	// [4 4] [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] [0 1 2 3]
	// [2 4] [16 17 18 19 20 21 22 23] [4 5]
}

// Two .npy files are two fields.
func ExampleOpen_fields() {
	ctx := context.Background()
	words, err := npy.Open(ctx, []source.Source{source.Path("testdata/big.npy")}, npy.Options{Name: "word"})
	if err != nil {
		log.Fatal(err)
	}
	defer words.Close()
	halves, err := npy.Open(ctx, []source.Source{source.Path("testdata/float16.npy")}, npy.Options{Name: "half"})
	if err != nil {
		log.Fatal(err)
	}
	defer halves.Close()
	data, err := compose.Zip(words, halves)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(data.Len(), data.Fields())
	// Output: 3 [word int32[2] half float16[2]]
}
