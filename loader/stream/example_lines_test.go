package stream_test

import (
	"context"
	"fmt"
	"testing/fstest"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/stream"
)

// One file is cut into two shards. Each line says where it is from.
func ExampleLines() {
	fsys := fstest.MapFS{"words.txt": {Data: []byte("to be\nor not\nto be\nthat is\n")}}
	lines := stream.Lines([]source.Source{source.FS(fsys, "words.txt")}, stream.LinesOptions{Parts: 2})
	for shard := range lines.Shards() {
		for item, err := range lines.Items(context.Background(), loader.Pass{}, shard) {
			fmt.Printf("shard %d: %s (%v) %v\n", shard, item.Value, item.Origin, err)
		}
	}
	// Output:
	// shard 0: to be (words.txt, line 1 at offset 0) <nil>
	// shard 0: or not (words.txt, line 2 at offset 6) <nil>
	// shard 1: to be (words.txt, offset 13) <nil>
	// shard 1: that is (words.txt, offset 19) <nil>
}

func ExampleJSON() {
	fsys := fstest.MapFS{"a.jsonl": {Data: []byte(`{"text":"to be"}` + "\n" + `{"text":17}` + "\n" + `{"text":"or not"}` + "\n")}}
	type document struct{ Text string }
	lines := stream.Lines([]source.Source{source.FS(fsys, "a.jsonl")}, stream.LinesOptions{})
	show(stream.JSON[document](lines))
	// Output:
	// a.jsonl, line 2 at offset 17: json: cannot unmarshal number into Go struct field document.Text of type string, at byte 10, near `{"text":17}`
	// shard 0 [{to be} {or not}]
}

// Words and their lengths come from two places, in the same order.
func ExampleZip() {
	words := stream.FromSlice([]string{"to", "be", "or not"}, 1)
	lengths := stream.FromSlice([]int{2, 2, 6}, 1)
	show(stream.Zip(words, lengths, func(_ context.Context, word string, length int) (bool, error) {
		return len(word) == length, nil
	}))
	// Output:
	// shard 0 [true true true]
}

func ExampleParallelMap() {
	pages := stream.FromSlice([]string{"/a", "/b", "/c", "/d"}, 1)
	show(stream.ParallelMap(pages, 4, func(ctx context.Context, page string) (string, error) {
		return "contents of " + page, ctx.Err() // as if it took long
	}))
	// Output:
	// shard 0 [contents of /a contents of /b contents of /c contents of /d]
}

// throttled is an error that says that a later attempt may succeed.
type throttled struct{}

func (throttled) Error() string   { return "too many requests" }
func (throttled) Temporary() bool { return true }

func ExampleRetry() {
	requests := 0
	pages := stream.Map(stream.FromSlice([]string{"/a", "/b"}, 1), func(_ context.Context, page string) (string, error) {
		if requests++; requests == 2 {
			return "", throttled{}
		}
		return "contents of " + page, nil
	})
	show(stream.Retry(pages, stream.RetryOptions{Attempts: 3, Wait: time.Millisecond}))
	fmt.Println(requests, "requests")
	// Output:
	// shard 0 [contents of /a contents of /b]
	// 4 requests
}
