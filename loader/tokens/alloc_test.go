//go:build !race

package tokens_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/source"
	"github.com/leat-go/leat/loader/tokens"
)

// The race detector has the compiler allocate what it otherwise does not.
func TestAWindowAllocatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.bin")
	require.NoError(t, os.WriteFile(path, counted[uint16](20_000), 0o600))
	for _, mapped := range []bool{false, true} {
		d, err := tokens.Open(t.Context(), []source.Source{source.Path(path)}, 8, tokens.Options{DType: dtype.Uint16, Vocabulary: 50257, Mapped: mapped})
		require.NoError(t, err)
		allocs, err := drain.Allocs(t.Context(), d, 8)
		require.NoError(t, err)
		require.Zero(t, allocs)
		require.NoError(t, d.Close())
	}
}
