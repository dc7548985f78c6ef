package stream_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
	"github.com/leat-go/leat/prefetch"
)

// Two documents share a window; the third doesn't fit and begins another.
func ExamplePack() {
	documents := stream.FromSlice([][]byte{[]byte("aaa"), []byte("bbbb"), []byte("cc")}, 1)
	windows := stream.Pack(documents, 8, stream.PackOptions[byte]{Pad: '.'})
	for w, err := range windows.Items(context.Background(), loader.Pass{}, 0) {
		fmt.Println(string(w.Value.Tokens), w.Value.Segments, w.Value.Positions, err)
	}
	// Output:
	// aaabbbb. [1 1 1 2 2 2 2 0] [0 1 2 0 1 2 3 0] <nil>
	// cc...... [1 1 0 0 0 0 0 0] [0 1 0 0 0 0 0 0] <nil>
}

func ExampleByLength() {
	words := stream.FromSlice([]string{"one", "thirteen", "to", "seventeen", "six", "a", "eighteen", "be"}, 1)
	show(stream.ByLength(words, 2, 4, func(word string) int { return len(word) }))
	// Output:
	// shard 0 [six thirteen eighteen seventeen a to be one]
}

// Texts in JSONL become windows of tokens, here of bytes.
func Example_packedText() {
	files, err := source.GlobFS(fstest.MapFS{
		"a.jsonl": {Data: []byte(`{"text":"to be"}` + "\n" + `{"text":"or not to be"}` + "\n")},
		"b.jsonl": {Data: []byte(`{"text":"that is"}` + "\n" + `{"text":"the question"}` + "\n")},
	}, "*.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	type document struct{ Text string }
	documents := stream.JSON[document](stream.Lines(files, stream.LinesOptions{}))
	tokens := stream.Map(documents, func(_ context.Context, d document) ([]uint8, error) { return []byte(d.Text), nil })
	windows := stream.Pack(stream.Shuffle(tokens, 1000), 24, stream.PackOptions[uint8]{Pad: '.'})
	fields := []loader.Field{{Name: "tokens", DType: dtype.Uint8, Shape: []int{24}}, {Name: "segments", DType: dtype.Int32, Shape: []int{24}}}
	data := stream.Encode(windows, fields, func(_ context.Context, w stream.Packed[uint8], row *loader.Row) error {
		return errors.Join(loader.Write(row, "tokens", w.Tokens...), loader.Write(row, "segments", w.Segments...))
	})
	deliver(data, "tokens", "%s")
	// Output:
	// to beor not to be.......the questionthat is..... <nil>
}

// Two sources are mixed 2:1, each shuffled.
func Example_shuffledMix() {
	numbers := stream.FromSlice([]int{1, 2, 3, 4, 5, 6}, 1)
	squares := stream.Map(numbers, func(_ context.Context, n int) (int, error) { return n * n, nil })
	even := stream.Filter(squares, func(n int) bool { return n%2 == 0 })
	mixed := stream.Mix(stream.UntilAllEnded,
		stream.Source[int]{Stream: stream.Shuffle(numbers, 100), Weight: 2},
		stream.Source[int]{Stream: stream.Shuffle(even, 100), Weight: 1})
	data := stream.Encode(mixed, []loader.Field{{Name: "n", DType: dtype.Uint8}}, func(_ context.Context, n int, row *loader.Row) error {
		return loader.Write(row, "n", uint8(n))
	})
	deliver(data, "n", "%d")
	// Output:
	// [36 5] <nil>
	// [6 16] <nil>
	// [3 2] <nil>
	// [4 4] <nil>
	// [1 36] <nil>
}

// deliver prints a field of the batches of an epoch.
func deliver(data loader.Stream, field, verb string) {
	ld, err := loader.NewStream(data, 2, loader.Options{Epochs: 1, Seed: 1})
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
		values, err := prefetch.Column[uint8](batch, field)
		fmt.Printf(verb+" %v\n", values, err)
	}
}
