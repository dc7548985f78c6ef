// Recipes are whole programs of a few lines each, for what most people need first: a stream
// with a shuffle buffer that goes on where it was stopped, text in JSONL, a part of the data
// for validation, and a folder of pictures. Each is a file that can be copied.
//
//	go run ./examples/recipes
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
)

func main() {
	folder, err := os.MkdirTemp("", "recipes")
	check(err)
	defer os.RemoveAll(folder)
	run(context.Background(), os.Stdout, folder)
}

// run makes data in a folder, and does what the recipes say.
func run(ctx context.Context, w io.Writer, folder string) {
	state := filepath.Join(folder, "state.json")
	numbers := writeNumbers(folder, 1000)
	first := resumed(ctx, numbers, state, 130)
	second := resumed(ctx, numbers, state, 0)
	fmt.Fprintf(w, "stream: stopped after %d samples, went on for %d\n", len(first), len(second))

	fmt.Fprintf(w, "text: %.1f%% of the tokens are padding\n", 100*padding(ctx, writeDocuments(folder, 1000)))

	validated(ctx, w, 100)

	data, classes := pictures(os.DirFS(writePictures(folder)))
	fmt.Fprintln(w, "pictures:", data.Len(), "of", classes)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
