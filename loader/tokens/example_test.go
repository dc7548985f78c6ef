package tokens_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
	"github.com/leat-go/leat/prefetch"
)

// The file has the tokens 0 to 19 and no header.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.Glob("testdata/plain.bin")
	if err != nil {
		log.Fatal(err)
	}
	data, err := tokens.Open(ctx, files, 4, tokens.Options{DType: dtype.Uint16, Vocabulary: 50257})
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
		words, err := prefetch.Column[uint16](batch, "tokens")
		if err != nil {
			log.Fatal(err)
		}
		for window := range batch.Len() {
			all := words[5*window : 5*(window+1)]
			fmt.Println("in", all[:4], "out", all[1:])
		}
	}
	// Output:
	// in [0 1 2 3] out [1 2 3 4]
	// in [4 5 6 7] out [5 6 7 8]
	// in [8 9 10 11] out [9 10 11 12]
	// in [12 13 14 15] out [13 14 15 16]
}
