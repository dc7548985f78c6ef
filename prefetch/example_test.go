package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// Squares is a dataset of one's own: sample i is i and its square.
type Squares struct{}

func (Squares) Len() int { return 10 }

func (Squares) Fields() []loader.Field {
	return []loader.Field{{Name: "x", DType: dtype.Float32}, {Name: "y", DType: dtype.Float32}}
}

func (Squares) Read(_ context.Context, i int, row *loader.Row) error {
	return errors.Join(loader.Write(row, "x", float32(i)), loader.Write(row, "y", float32(i*i)))
}

// Without a device the batches are read where they lie, in pinned memory, without a copy.
func ExampleNewHost() {
	ld, err := loader.New(Squares{}, 4, loader.Options{Epochs: 1})
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	defer pf.Close()
	for batch, err := range pf.All(context.Background()) {
		check(err)
		y, err := prefetch.Column[float32](batch, "y")
		check(err)
		fmt.Println(y)
	}
	// Output:
	// [0 1 4 9]
	// [16 25 36 49]
	// [64 81]
}

// open makes a host pipeline over Squares.
func open(batchSize int, o loader.Options) *prefetch.Prefetcher {
	ld, err := loader.New(Squares{}, batchSize, o)
	check(err)
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	check(err)
	return pf
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
