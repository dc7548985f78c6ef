package tfrecord_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tfrecord"
	"github.com/leat-go/leat/prefetch"
)

func ExampleRecords_Examples() {
	ctx := context.Background()
	files, err := source.Glob("testdata/*.tfrecord")
	if err != nil {
		log.Fatal(err)
	}
	records, err := tfrecord.Open(ctx, files, tfrecord.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer records.Close()
	data := records.Examples([]loader.Field{
		{Name: "id", DType: dtype.Int64},
		{Name: "image", DType: dtype.Uint8, Shape: []int{3}},
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
		ids, err := prefetch.Column[int64](batch, "id")
		fmt.Println(ids, err)
	}
	// Output: [0 -1 -2 -3 -4] <nil>
}
