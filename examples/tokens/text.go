package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/compose"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
)

// vocabulary is the number of tokens: each byte is one, and 0, which no text has, ends a file.
const vocabulary = 256

// standardLibrary is a folder with a text that every machine with Go has.
func standardLibrary(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT, which is asked where -text is not stated: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src", "strings"), nil
}

// tokenize writes the files of Go in a folder to one file of tokens, which is whole or absent.
func tokenize(folder, to string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no files of Go", folder)
	}
	slices.Sort(files) // the same text on every machine
	var all bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if at := bytes.IndexByte(text, 0); at >= 0 {
			return fmt.Errorf("%s: byte %d is 0, which stands for the end of a text", file, at)
		}
		all.Write(text)
		all.WriteByte(0)
	}
	building, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.new")
	if err != nil {
		return err
	}
	_, err = building.Write(all.Bytes())
	if closed := building.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(building.Name(), to)
	}
	if err != nil {
		_ = os.Remove(building.Name()) // err says why
	}
	return err
}

// windows are the samples of a file of tokens: "input", of length tokens, and "target", what
// follows each of them.
func windows(ctx context.Context, path string, length int) (loader.Dataset, *tokens.Dataset, error) {
	files, err := source.List(path)
	if err != nil {
		return nil, nil, err
	}
	all, err := tokens.Open(ctx, files, length, tokens.Options{DType: dtype.Uint8, Mapped: true})
	if err != nil {
		return nil, nil, err
	}
	fields := []loader.Field{
		{Name: "input", DType: dtype.Uint8, Shape: []int{length}},
		{Name: "target", DType: dtype.Uint8, Shape: []int{length}},
	}
	pairs, err := compose.Map(all, fields, func(_ context.Context, in, out *loader.Row) error {
		window := loader.Value[uint8](in, "tokens")
		copy(loader.Column[uint8](out, "input"), window[:length])
		copy(loader.Column[uint8](out, "target"), window[1:])
		return nil
	})
	return pairs, all, err
}
