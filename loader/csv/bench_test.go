package csv_test

import (
	"bytes"
	"context"
	stdcsv "encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/lines"
	"github.com/leat-go/leat/loader/source"
)

// BenchmarkRead reads shuffled rows of 20 numbers, and beside it as one would with encoding/csv
// (how=encoding), row by row.
func BenchmarkRead(b *testing.B) {
	const columns, count = 20, 20_000
	var text bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	for c := range columns {
		fmt.Fprintf(&text, "c%d%c", c, ",\n"[c/(columns-1)])
	}
	for range count {
		for c := range columns {
			fmt.Fprintf(&text, "%.4f%c", random.NormFloat64(), ",\n"[c/(columns-1)])
		}
	}
	path := filepath.Join(b.TempDir(), "a.csv")
	require.NoError(b, os.WriteFile(path, text.Bytes(), 0o600))
	files := []source.Source{source.Path(path)}
	x := number("x", dtype.Float32, columns)
	x.From = "c0"
	for _, how := range []string{"mapped", "read", "encoding"} {
		b.Run("how="+how, func(b *testing.B) {
			d, err := csv.Open(b.Context(), files, []csv.Column{x}, csv.Options{Mapped: how == "mapped"})
			if how == "encoding" {
				d, err = lines.Open(b.Context(), files, []loader.Field{x.Field}, standard, lines.Options{InMemory: true})
			}
			require.NoError(b, err)
			defer d.Close()
			drain.Bench(b, d, 1000)
		})
	}
}

// standard is what one would write without package csv.
func standard(_ context.Context, text []byte, row *loader.Row) error {
	record, err := stdcsv.NewReader(bytes.NewReader(text)).Read()
	if err != nil {
		return err
	}
	to := loader.Column[float32](row, "x")
	for i, cell := range record {
		v, err := strconv.ParseFloat(cell, 32)
		if err != nil {
			v = 0 // the header
		}
		to[i] = float32(v)
	}
	return nil
}
