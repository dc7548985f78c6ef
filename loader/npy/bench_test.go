package npy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
)

// BenchmarkRead reads shuffled batches of 64 MiB of float32, and copies the same rows from
// memory: how=copy is what the others are measured by.
func BenchmarkRead(b *testing.B) {
	for _, elements := range []int{196, 1024, 37632} {
		const size = 64 << 20
		rows := size / 4 / elements
		path := filepath.Join(b.TempDir(), "rows.npy")
		data := make([]byte, rows*elements*4)
		_, _ = rand.NewChaCha8([32]byte{}).Read(data)
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}", rows, elements)
		require.NoError(b, os.WriteFile(path, file(header, data...), 0o600))
		files := []source.Source{source.Path(path)}
		fields := []loader.Field{{Name: "data", DType: dtype.Float32, Shape: []int{elements}}}
		memory := loader.FromFunc(rows, fields, func(_ context.Context, i int, row *loader.Row) error {
			to := row.Bytes("data")
			copy(to, data[i*len(to):])
			return nil
		})
		for _, how := range []string{"copy", "mapped", "read"} {
			b.Run(fmt.Sprintf("row=%d/how=%s", 4*elements, how), func(b *testing.B) {
				ds := memory
				if how != "copy" {
					opened, err := npy.Open(b.Context(), files, npy.Options{Mapped: how == "mapped"})
					require.NoError(b, err)
					defer opened.Close()
					ds = opened
				}
				drain.Bench(b, ds, max(1, 1<<20/4/elements))
			})
		}
	}
}
