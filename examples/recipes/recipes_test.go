package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	run(t.Context(), &out, t.TempDir())
	require.Equal(t, `stream: stopped after 1300 samples, went on for 700
text: 7.1% of the tokens are padding
epoch 0 of 90 samples, then 10 others
epoch 1 of 90 samples, then 10 others
epoch 2 of 90 samples, then 10 others
pictures: 6 of [blue red]
`, out.String())
}

// Wherever the stream is stopped, each epoch has every line once, in the order of the whole
// run.
func TestTheStreamGoesOnExactly(t *testing.T) {
	folder := t.TempDir()
	files := writeNumbers(folder, 1000)
	whole := resumed(t.Context(), files, filepath.Join(folder, "whole.json"), 0)
	require.Len(t, whole, 2000)
	for epoch := range 2 {
		seen := slices.Sorted(slices.Values(whole[1000*epoch : 1000*epoch+1000]))
		for i, n := range seen {
			require.EqualValues(t, i, n)
		}
	}
	require.NotEqual(t, whole[:1000], whole[1000:])
	for _, steps := range []int{1, 99, 100, 149, 199} {
		state := filepath.Join(t.TempDir(), "state.json")
		got := resumed(t.Context(), files, state, steps)
		got = append(got, resumed(t.Context(), files, state, 1)...)
		require.Equal(t, whole, append(got, resumed(t.Context(), files, state, 0)...))
	}
}

// A picture's bytes and its class belong together.
func TestPictures(t *testing.T) {
	data, classes := pictures(os.DirFS(writePictures(t.TempDir())))
	require.Equal(t, []string{"blue", "red"}, classes)
	scratch, err := loader.NewScratch(data.Fields())
	require.NoError(t, err)
	for i := range data.Len() {
		row := scratch.Begin(new(loader.Row))
		require.NoError(t, data.Read(t.Context(), i, row))
		require.NoError(t, scratch.Written())
		label := loader.Value[int64](row, "label")[0]
		want := [][]byte{{0, 0, 255, 255}, {255, 0, 0, 255}}[label]
		require.Equal(t, bytes.Repeat(want, 64), row.Bytes("image"))
		require.Equal(t, i >= 3, label == 1)
	}
}

// A recipe is short: the bodies of the functions in its file have no more than 25 lines.
func TestRecipesAreShort(t *testing.T) {
	for _, name := range []string{"stream.go", "text.go", "validation.go", "pictures.go"} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, nil, 0)
		require.NoError(t, err)
		lines := 0
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				lines += files.Position(d.Body.Rbrace).Line - files.Position(d.Body.Lbrace).Line - 1
			}
		}
		require.LessOrEqual(t, lines, 25, name)
	}
}
