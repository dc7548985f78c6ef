package arrows

import (
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
	"testing"

	"github.com/stretchr/testify/require"
)

// typed is a package of this module with its types, from its source and from the compiler's
// export data of what it imports.
func typed(t *testing.T, pkg string) *types.Package {
	t.Helper()
	list := func(args ...string) []string {
		out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	exports := make(map[string]string)
	for _, line := range list("-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", module+pkg) {
		path, file, _ := strings.Cut(line, "\t")
		exports[path] = file
	}
	fset := token.NewFileSet()
	var files []*ast.File
	source := list("-f", `{{.Dir}}{{range .GoFiles}}{{"\n"}}{{.}}{{end}}`, module+pkg)
	for _, name := range source[1:] {
		f, err := parser.ParseFile(fset, filepath.Join(source[0], name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	p, err := conf.Check(module+pkg, fset, files, nil)
	require.NoError(t, err)
	return p
}

// fields is how many fields of a struct can be named, those of embedded structs included.
func fields(s *types.Struct) int {
	n := 0
	for f := range s.Fields() {
		of := f.Type()
		if p, ok := of.Underlying().(*types.Pointer); ok {
			of = p.Elem()
		}
		n++
		if inner, ok := of.Underlying().(*types.Struct); ok && f.Embedded() {
			n += fields(inner)
		}
	}
	return n
}

// A type of package prefetch, or of the slots below it, is small enough to be read in one go.
func TestTypesOfPrefetchAreSmall(t *testing.T) {
	require.Greater(t, smallTypes(t, "prefetch"), 20)
	require.Positive(t, smallTypes(t, "internal/slots"))
}

// smallTypes is how many structs a package has, all of whose types are small.
func smallTypes(t *testing.T, pkg string) (structs int) {
	const mostFields, mostMethods = 20, 25
	scope := typed(t, pkg).Scope()
	for _, name := range scope.Names() {
		of, ok := scope.Lookup(name).(*types.TypeName)
		if !ok {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(of.Type())).Len()
		require.LessOrEqual(t, methods, mostMethods, "methods of %s", name)
		if s, ok := of.Type().Underlying().(*types.Struct); ok {
			structs++
			require.LessOrEqual(t, fields(s), mostFields, "fields of %s", name)
		}
	}
	return structs
}
