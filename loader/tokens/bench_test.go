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

// BenchmarkRead reads shuffled windows of a file of 64 MiB that the system has in memory, and says
// how fast that is beside the same windows copied from memory.
func BenchmarkRead(b *testing.B) {
	data := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	for i := range data {
		data[i] &= 0x7f // tokens below 32768
	}
	path := filepath.Join(b.TempDir(), "tokens.bin")
	require.NoError(b, os.WriteFile(path, data, 0o600))
	files := []source.Source{source.Path(path)}
	for _, length := range []int{256, 1024, 2048, 8192} {
		for _, how := range []string{"mapped", "read", "checked"} {
			b.Run(fmt.Sprintf("length=%d/how=%s", length, how), func(b *testing.B) {
				o := tokens.Options{DType: dtype.Uint16, Mapped: how != "read"}
				if how == "checked" {
					o.Vocabulary = 1<<16 - 1
				}
				d, err := tokens.Open(b.Context(), files, length, o)
				require.NoError(b, err)
				defer d.Close()
				plain := loader.FromFunc(d.Len(), d.Fields(), func(_ context.Context, i int, row *loader.Row) error {
					copy(row.Bytes("tokens"), data[2*i*length:])
					return nil
				})
				drain.Compare(b, d, plain, max(1, 1<<19/length))
			})
		}
	}
}
