package tokens_test

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
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
)

// BenchmarkRead reads shuffled windows of a file of 64 MiB, and copies the same windows from
// memory: how=copy is what the others are measured by.
func BenchmarkRead(b *testing.B) {
	data := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	path := filepath.Join(b.TempDir(), "tokens.bin")
	require.NoError(b, os.WriteFile(path, data, 0o600))
	files := []source.Source{source.Path(path)}
	for _, length := range []int{256, 1024, 2048, 8192} {
		for _, how := range []string{"copy", "mapped", "read", "checked"} {
			o := tokens.Options{DType: dtype.Uint16, Mapped: how != "read"}
			if how == "checked" {
				o.Vocabulary = 1 << 16
			}
			b.Run(fmt.Sprintf("length=%d/how=%s", length, how), func(b *testing.B) {
				opened, err := tokens.Open(b.Context(), files, length, o)
				require.NoError(b, err)
				defer opened.Close()
				ds := loader.Dataset(opened)
				if how == "copy" {
					ds = loader.FromFunc(opened.Len(), opened.Fields(), func(_ context.Context, i int, row *loader.Row) error {
						copy(row.Bytes("tokens"), data[2*i*length:])
						return nil
					})
				}
				drain.Bench(b, ds, max(1, 1<<19/length))
			})
		}
	}
}
