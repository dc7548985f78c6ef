package lines_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/prefetch"
)

// Each line is a text, and a sample has the lengths of its words.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.GlobFS(fstest.MapFS{
		"a.txt": {Data: []byte("to be or not\n\nto be\n")}, "b.txt": {Data: []byte("that is the question\n")},
	}, "*.txt")
	if err != nil {
		log.Fatal(err)
	}
	fields := []loader.Field{{Name: "lengths", DType: dtype.Int32, Shape: []int{8}, Ragged: &loader.Ragged{}}}
	data, err := lines.Open(ctx, files, fields, func(_ context.Context, text []byte, row *loader.Row) error {
		to, n := loader.Column[int32](row, "lengths"), 0
		for word := range bytes.FieldsSeq(text) {
			to[n] = int32(len(word))
			n++
		}
		return row.SetLen("lengths", n)
	}, lines.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	ld, err := loader.New(data, 2, loader.Options{Shuffle: true, Seed: 1, Epochs: 1})
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
		lengths, err := prefetch.Column[int32](batch, "lengths")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Field("lengths").Shape, lengths)
	}
	fmt.Println("the last is at", data.Origin(2))
	// Output:
	// [2 4] [2 2 2 3 4 2 3 8]
	// [1 2] [2 2]
	// the last is at b.txt, record 0 at offset 0
}
