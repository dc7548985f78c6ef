package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A source is one package's files, parsed and checked.
type source struct {
	Path   string // import path
	dir    string
	files  []*file
	info   *types.Info
	module *module
}

// A file is one of a package's, test files left out.
type file struct {
	name string // absolute
	text []byte
	tree *ast.File
}

// A module is the Go module that the packages are part of, with the compiled form of
// all they import.
type module struct {
	Path, Dir, GoVersion string
	set                  *token.FileSet
	exports              map[string]string
	compiled             types.Importer
	runtime              *types.Package // package mutant's exported functions
}

// Import implements types.Importer.
func (m *module) Import(path string) (*types.Package, error) {
	if path != m.runtimePath() {
		return m.compiled.Import(path)
	}
	if m.runtime == nil {
		const text = "package mutant; func On(n int) bool { return false }; func Without[T any](n int, v T) T { return v }"
		tree, err := parser.ParseFile(m.set, "mutant.go", text, 0)
		if err != nil {
			return nil, err
		}
		if m.runtime, err = new(types.Config).Check(path, m.set, []*ast.File{tree}, nil); err != nil {
			return nil, err
		}
	}
	return m.runtime, nil
}

type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
	Module                  *module
}

// load reads the packages that patterns name.
func load(dir, tags string, patterns []string) (*module, []*source, error) {
	args := append([]string{"list", "-tags=" + tags, "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly,Module", "--"}, patterns...)
	out, err := goTool(dir, args...)
	if err != nil {
		return nil, nil, err
	}
	m := &module{set: token.NewFileSet(), exports: map[string]string{}}
	m.compiled = importer.ForCompiler(m.set, "gc", func(path string) (io.ReadCloser, error) {
		name := m.exports[path]
		if name == "" {
			return nil, fmt.Errorf("no compiled form of %s", path)
		}
		return os.Open(name)
	})
	var sources []*source
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		m.exports[l.ImportPath] = l.Export
		if l.DepOnly {
			continue
		}
		if l.Module == nil {
			return nil, nil, fmt.Errorf("%s is in no module", l.ImportPath)
		}
		m.Path, m.Dir, m.GoVersion = l.Module.Path, l.Module.Dir, l.Module.GoVersion
		s := &source{Path: l.ImportPath, dir: l.Dir, module: m}
		for _, name := range l.GoFiles {
			name = filepath.Join(l.Dir, name)
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, nil, err
			}
			s.files = append(s.files, &file{name: name, text: text})
		}
		sources = append(sources, s)
	}
	for _, s := range sources {
		for _, f := range s.files {
			f.tree, err = parser.ParseFile(m.set, f.name, f.text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, nil, err
			}
		}
		info, errs := m.check(s.Path, s.trees())
		if len(errs) > 0 {
			return nil, nil, errs[0]
		}
		s.info = info
	}
	return m, sources, nil
}

func (s *source) trees() []*ast.File {
	var trees []*ast.File
	for _, f := range s.files {
		trees = append(trees, f.tree)
	}
	return trees
}

// check type-checks a package.
func (m *module) check(path string, trees []*ast.File) (*types.Info, []error) {
	var errs []error
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: m, GoVersion: "go" + m.GoVersion, Error: func(err error) { errs = append(errs, err) }}
	_, _ = config.Check(path, m.set, trees, info) // the errors are in errs
	return info, errs
}

// goTool runs the go command in dir.
func goTool(dir string, args ...string) ([]byte, error) {
	c := exec.Command("go", args...)
	c.Dir = dir
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out.Bytes(), nil
}
