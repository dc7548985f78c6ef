package jsonl_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"log"
	"testing/fstest"
	"unicode/utf8"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/jsonl"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// The keys that are called as the fields are.
func ExampleOpen() {
	ctx := context.Background()
	files, err := source.GlobFS(fstest.MapFS{"a.jsonl": {Data: []byte(`{"text":"very good","stars":5,"by":"x"}
{"text":"so so","stars":3,"by":"y"}
`)}}, "*.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	fields := []loader.Field{
		{Name: "text", DType: dtype.Uint8, Shape: []int{256}, Ragged: &loader.Ragged{Pad: ' '}},
		{Name: "stars", DType: dtype.Int64},
	}
	data, err := jsonl.Open(ctx, files, fields, jsonl.Options{})
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
		stars, err := prefetch.Column[int64](batch, "stars")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v %q %v\n", batch.Field("text").Shape, batch.Field("text").Bytes, stars)
	}
	// Output: [2 9] "very goodso so    " [5 3]
}

// A function makes a sample of a value: here it counts characters, where a tokeniser would cut.
func ExampleOpenFunc() {
	ctx := context.Background()
	files, err := source.GlobFS(fstest.MapFS{"a.jsonl": {Data: []byte(`{"text":"naïve"}`)}}, "*.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	type document struct {
		Text string `json:"text"`
	}
	fields := []loader.Field{{Name: "length", DType: dtype.Int32}}
	data, err := jsonl.OpenFunc(ctx, files, fields, func(_ context.Context, d document, row *loader.Row) error {
		return loader.Write(row, "length", int32(utf8.RuneCountInString(d.Text)))
	}, jsonl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer data.Close()
	fmt.Println(data.Len(), data.Fields())
	// Output: 1 [length int32]
}

// A file that is compressed is a stream: here of one document.
func ExampleOpenFunc_compressed() {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("{\"text\":\"naïve\"}\n")); err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	files, err := source.GlobFS(fstest.MapFS{"a.jsonl.gz": {Data: packed.Bytes()}}, "*.jsonl.gz")
	if err != nil {
		log.Fatal(err)
	}
	type document struct {
		Text string `json:"text"`
	}
	fields := []loader.Field{{Name: "length", DType: dtype.Int32}}
	documents := stream.JSON[document](lines.NewStream(files, lines.StreamOptions{}))
	ld, err := loader.NewStream(stream.Encode(documents, fields, func(_ context.Context, d document, row *loader.Row) error {
		return loader.Write(row, "length", int32(utf8.RuneCountInString(d.Text)))
	}), 8, loader.Options{Epochs: 1})
	if err != nil {
		log.Fatal(err)
	}
	pf, err := prefetch.NewHost(ld, prefetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer pf.Close()
	for batch, err := range pf.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		lengths, err := prefetch.Column[int32](batch, "length")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lengths)
	}
	// Output: [5]
}
