package stream_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/stream"
)

// What takes long is done once: the second run reads files.
func ExampleCacheFile() {
	directory, err := os.MkdirTemp("", "leat")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(directory)
	words := stream.FromSlice([]string{"a", "leat", "turns", "the", "wheel"}, 1)
	calls := 0
	loud := stream.Map(words, func(_ context.Context, word string) (string, error) {
		calls++
		return strings.ToUpper(word), nil
	})
	text := stream.Format[string]{
		Append: func(dst []byte, word string) ([]byte, error) { return append(dst, word...), nil },
		Parse:  func(src []byte) (string, error) { return string(src), nil },
	}
	for range 2 {
		cache := stream.CacheFile(loud, directory, "upper case", text, stream.FileCacheOptions{})
		for item, err := range cache.Stream().Items(context.Background(), loader.Pass{}, 0) {
			fmt.Print(item.Value, " ", err, " ")
		}
		fmt.Println(calls)
	}
	// Output:
	// A <nil> LEAT <nil> TURNS <nil> THE <nil> WHEEL <nil> 5
	// A <nil> LEAT <nil> TURNS <nil> THE <nil> WHEEL <nil> 5
}
