package safetensors_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/safetensors"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

// The tensors' first dimension counts the samples.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/features.safetensors")
	if err != nil {
		log.Fatal(err)
	}
	data, err := safetensors.Open(ctx, files, safetensors.Options{Tensors: []string{"latent", "label"}})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 2, loader.Options{Epochs: 1})
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
		latents, err := prefetch.Column[float32](batch, "latent")
		if err != nil {
			log.Fatal(err)
		}
		labels, err := prefetch.Column[int64](batch, "label")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Field("latent").Shape, latents, labels)
	}
	// Output:
	// [2 2 3] [0 1 2 3 4 5 6 7 8 9 10 11] [0 1]
	// [2 2 3] [12 13 14 15 16 17 18 19 20 21 22 23] [2 3]
}
