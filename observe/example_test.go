package observe_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
)

// squares is a dataset of numbers.
type squares struct{}

func (squares) Len() int { return 100 }

func (squares) Fields() []loader.Field { return []loader.Field{{Name: "x", DType: dtype.Float32}} }

func (squares) Read(_ context.Context, i int, row *loader.Row) error {
	return loader.Write(row, "x", float32(i*i))
}

// Who waited for whom in one epoch, and what to change.
func Example() {
	ctx := context.Background()
	ld, err := loader.New(squares{}, 10, loader.Options{})
	check(err)
	rec := observe.NewRecorder(observe.Options{})
	pf, err := prefetch.NewHost(ld, prefetch.Options{Recorder: rec})
	check(err)
	defer pf.Close()
	before := observe.Take(pf)
	for _, err := range pf.Batches(ctx) {
		check(err)
	}
	now := observe.Take(pf)
	fmt.Print(now.Sub(before).Explain()) // the bottleneck, in sentences
	fmt.Print(now.Sub(before))           // the table
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
