//go:build !race

package npy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/npy"
	"github.com/leat-go/leat/loader/source"
)

// The race detector has the compiler allocate what it otherwise does not.
func TestARowAllocatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npy")
	require.NoError(t, os.WriteFile(path, file("{'descr': '>i2', 'fortran_order': False, 'shape': (4000, 3)}", bytes.Repeat([]byte{1, 2, 3}, 8000)...), 0o600))
	for _, mapped := range []bool{false, true} {
		d, err := npy.Open(t.Context(), []source.Source{source.Path(path)}, npy.Options{Mapped: mapped})
		require.NoError(t, err)
		allocs, err := drain.Allocs(t.Context(), d, 8)
		require.NoError(t, err)
		require.Zero(t, allocs)
		require.NoError(t, d.Close())
	}
}
