package jsonl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/jsonl"
	"github.com/leat-go/leat/loader/source"
)

// BenchmarkRead reads shuffled lines with a text of a kilobyte, a number and ten floats: by
// their keys, and by encoding/json into a struct.
func BenchmarkRead(b *testing.B) {
	type line struct {
		Text   string    `json:"text"`
		Label  int64     `json:"label"`
		Vector []float32 `json:"vector"`
	}
	fields := []loader.Field{ragged("text", dtype.Uint8, 2000), {Name: "label", DType: dtype.Int64}, {Name: "vector", DType: dtype.Float32, Shape: []int{10}}}
	var text bytes.Buffer
	for i := range int64(10_000) {
		b, err := json.Marshal(line{strings.Repeat("lorem ipsum ", 80), i, []float32{0.5, 1.25, -3e-5, 4, 5, 6, 7, 8, 9, float32(i)}})
		if err != nil {
			panic(err)
		}
		text.Write(append(b, '\n'))
	}
	path := filepath.Join(b.TempDir(), "a.jsonl")
	require.NoError(b, os.WriteFile(path, text.Bytes(), 0o600))
	files := []source.Source{source.Path(path)}
	b.Run("how=keys", func(b *testing.B) {
		d, err := jsonl.Open(b.Context(), files, fields, jsonl.Options{Mapped: true})
		require.NoError(b, err)
		defer d.Close()
		drain.Bench(b, d, 100)
	})
	b.Run("how=struct", func(b *testing.B) {
		d, err := jsonl.OpenFunc(b.Context(), files, fields, func(_ context.Context, l line, row *loader.Row) error {
			if err := loader.Write(row, "text", []byte(l.Text)...); err != nil {
				return err
			}
			if err := loader.Write(row, "label", l.Label); err != nil {
				return err
			}
			return loader.Write(row, "vector", l.Vector...)
		}, jsonl.Options{Mapped: true})
		require.NoError(b, err)
		defer d.Close()
		drain.Bench(b, d, 100)
	})
}
