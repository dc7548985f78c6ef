package cifar_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/cifar"
	"github.com/leat-go/leat/loader/source"
)

// A file of two pictures, both of class 7, stands for the five of CIFAR-10.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.GlobFS(fstest.MapFS{"data_batch_1.bin": {Data: file(2, 7)}}, "data_batch_{1..1}.bin")
	if err != nil {
		log.Fatal(err)
	}
	data, err := cifar.Open(ctx, files, cifar.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 2, loader.Options{Shuffle: true, Epochs: 10})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(data.Len(), "pictures of", data.Fields(), "in batches of", ld.BatchSize())
	// Output: 2 pictures of [label uint8 image uint8[3 32 32]] in batches of 2
}
