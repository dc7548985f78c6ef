package mds_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/mds"
	"github.com/leat-go/leat/prefetch"
)

func ExampleOpen() {
	ctx := context.Background()
	samples, err := mds.Open(ctx, "testdata/plain", mds.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer samples.Close()
	data := samples.Dataset([]loader.Field{
		{Name: "id", DType: dtype.Int64},
		{Name: "fixed", DType: dtype.Int16, Shape: []int{2, 3}},
	}, nil)
	ld, err := loader.New(data, 6, loader.Options{Epochs: 1})
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
	// [0 -1 -2 -3 -4 -5] <nil>
	// [-6 -7 -8 -9 -10 -11] <nil>
}
