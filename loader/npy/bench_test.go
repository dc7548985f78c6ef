package npy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
)

// BenchmarkRead reads shuffled rows of a file of 64 MiB that the system has in memory, and says
// how fast that is beside the same rows copied from memory.
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
		for _, how := range []string{"mapped", "read"} {
			b.Run(fmt.Sprintf("row=%d/how=%s", 4*elements, how), func(b *testing.B) {
				d, err := npy.Open(b.Context(), files, npy.Options{Mapped: how == "mapped"})
				require.NoError(b, err)
				defer d.Close()
				plain := loader.FromFunc(rows, d.Fields(), func(_ context.Context, i int, row *loader.Row) error {
					to := row.Bytes("data")
					copy(to, data[i*len(to):])
					return nil
				})
				drain.Compare(b, d, plain, max(1, 1<<20/4/elements))
			})
		}
	}
}
