// Apilist prints everything that users of this module can name, one line each, in an
// order that does not change: the committed listing is api/leat.txt.
//
//	make api        # writes the listing
//	make api-check  # shows what has changed since it was committed
//
// It reads the export data of a build for linux/amd64. Commands, examples and internal
// packages are left out. A parameter's name is no promise, and is listed because it is
// read.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/leat-go/leat"

func main() {
	if err := list(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apilist:", err)
		os.Exit(1)
	}
}

func list(w io.Writer) error {
	packages, exports, err := build()
	if err != nil {
		return err
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	out := bufio.NewWriter(w)
	slices.Sort(packages)
	for _, path := range packages {
		pkg, err := from.Import(path)
		if err != nil {
			return err
		}
		for _, line := range features(pkg) {
			fmt.Fprintf(out, "%s: %s\n", strings.TrimPrefix(path, module+"/"), line)
		}
	}
	return out.Flush()
}

// build compiles the module's packages for users, and returns their paths in order, and
// the files of export data of all that they are built from.
func build() (packages []string, exports map[string]string, err error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Name,DepOnly", module+"/...")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s", err, &stderr)
	}
	exports = map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			ImportPath, Export, Name string
			DepOnly                  bool
		}
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, exports, nil
		case err != nil:
			return nil, nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Name != "main" && !hidden(p.ImportPath) {
			packages = append(packages, p.ImportPath)
		}
	}
}

func hidden(path string) bool {
	path = strings.TrimPrefix(path, module+"/")
	return strings.Contains("/"+path+"/", "/internal/") ||
		strings.HasPrefix(path, "examples/") || strings.HasPrefix(path, "cmd/")
}
