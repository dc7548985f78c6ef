package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/leat-go/leat/loader/source"
)

// writeNumbers makes four files of the lines 0 to n-1.
func writeNumbers(folder string, n int) []source.Source {
	for file := range 4 {
		var lines strings.Builder
		for i := file * n / 4; i < (file+1)*n/4; i++ {
			fmt.Fprintln(&lines, i)
		}
		write(filepath.Join(folder, fmt.Sprintf("numbers-%d.txt", file)), lines.String())
	}
	files, err := source.Glob(filepath.Join(folder, "numbers-{0..3}.txt"))
	check(err)
	return files
}

// writeDocuments makes a file of n documents in JSONL, of up to 1000 bytes.
func writeDocuments(folder string, n int) []source.Source {
	var lines strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		line, err := json.Marshal(document{Text: strings.Repeat("word ", 1+random.IntN(200))})
		check(err)
		fmt.Fprintf(&lines, "%s\n", line)
	}
	path := filepath.Join(folder, "documents.jsonl")
	write(path, lines.String())
	return []source.Source{source.Path(path)}
}

// writePictures makes a folder for each of two classes, with three pictures of one colour.
func writePictures(folder string) string {
	folder = filepath.Join(folder, "pictures")
	for class, c := range map[string]color.Color{"blue": color.RGBA{B: 255, A: 255}, "red": color.RGBA{R: 255, A: 255}} {
		check(os.MkdirAll(filepath.Join(folder, class), 0o700))
		picture := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for i := range 64 {
			picture.Set(i%8, i/8, c)
		}
		for i := range 3 {
			f, err := os.Create(filepath.Join(folder, class, fmt.Sprintf("%d.png", i)))
			check(err)
			check(png.Encode(f, picture))
			check(f.Close())
		}
	}
	return folder
}

func write(path, text string) { check(os.WriteFile(path, []byte(text), 0o600)) }
