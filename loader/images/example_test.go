package images_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/images"
	"github.com/leat-go/leat/prefetch"
)

func ExampleOpen() {
	ctx := context.Background()
	pets, err := images.Open(ctx, "testdata/pets", images.Options{Height: 64, Width: 64})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(pets.Plan())
	ld, err := loader.New(pets, 4, loader.Options{Shuffle: true, Seed: 1, Epochs: 1})
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
		fmt.Println(batch.Field("image").Shape, dtype.As[int32](batch.Field("label").Bytes))
	}
	// Output:
	// testdata/pets: 4 pictures of 2 classes, decoded by Go's standard decoders
	//   0 cat: 2
	//   1 dog: 2
	// files left out: 1
	//   dog/README.txt
	// [4 64 64 3] [1 0 0 1]
}
