package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package p

const Limit = 8
const hidden = 9
var ErrEnd error
type Size int64
func (s *Size) Set(v int) {}
func (s Size) less() bool { return false }
type Alias = Size
type Options struct {
	Depth int ` + "`json:\"depth\"`" + `
	inner int
	Size
}
type Source interface {
	error
	Read(n int) (Size, error)
}
type Box[T any] struct{ Value T }
func (b *Box[T]) Get() T { return b.Value }
func Open[T ~int | string](name string, more ...T) (*Box[T], error) { return nil, nil }
func open() {}
`

func TestFeatures(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	require.NoError(t, err)
	config := types.Config{Importer: importer.Default()}
	pkg, err := config.Check("p", fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{
		"type Alias = Size",
		"type Box[T any] struct",
		"type Box[T any] struct, Value T",
		"method (*Box[T]) Get() T",
		"var ErrEnd error",
		"const Limit untyped int = 8",
		"func Open[T ~int | string](name string, more ...T) (*Box[T], error)",
		"type Options struct",
		"type Options struct, Depth int `json:\"depth\"`",
		"type Options struct, embedded Size",
		"type Size int64",
		"method (*Size) Set(v int)",
		"type Source interface",
		"type Source interface, error",
		"type Source interface, Read(n int) (Size, error)",
	}, features(pkg))
}

func TestWhatUsersCannotImportIsLeftOut(t *testing.T) {
	require.True(t, hidden(module+"/internal/life"))
	require.True(t, hidden(module+"/device/internal/pages"))
	require.True(t, hidden(module+"/examples/train/nn"))
	require.False(t, hidden(module+"/device/meter"))
}
