package film

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // photographs' formats
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const modulePath = "golang.org/x/image"

// names of the photographs in the module's folder testdata.
var names = []string{"blue-purple-pink-large.png", "yellow_rose.png", "go-turns-two-280x360.jpeg"}

// Photographs reads the photographs from the folder dir or, if that is empty, from
// the Go module cache, to which the go command downloads the module if need be.
// The error says where to get them.
func Photographs(ctx context.Context, dir string) ([]image.Image, error) {
	if dir == "" {
		module, err := moduleFolder(ctx)
		if err != nil {
			return nil, fmt.Errorf("film: the go command can't find %s: %w; copy %s from its folder testdata into a folder and name it with -photographs",
				modulePath, err, strings.Join(names, ", "))
		}
		dir = filepath.Join(module, "testdata")
	}
	var photographs []image.Image
	var errs []error
	for _, name := range names {
		p, err := read(filepath.Join(dir, name))
		if err != nil {
			errs = append(errs, fmt.Errorf("film: %w", err))
		}
		photographs = append(photographs, p)
	}
	return photographs, errors.Join(errs...)
}

func read(name string) (image.Image, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func moduleFolder(ctx context.Context) (string, error) {
	// With its version the module is found from any folder.
	query := modulePath
	if version := builtWith(); version != "" {
		query += "@" + version
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	var answer struct{ Dir, Error string }
	switch {
	case json.Unmarshal(stdout, &answer) == nil && answer.Dir != "":
		return answer.Dir, nil
	case answer.Error != "":
		return "", errors.New(answer.Error)
	case err != nil && stderr.Len() > 0:
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	case err != nil:
		return "", err
	}
	return "", errors.New("no folder in its answer")
}

// builtWith is the module's version in this very program, "" if it doesn't tell.
func builtWith() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == modulePath {
			return m.Version
		}
	}
	return ""
}
