//go:build !race

package csv_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/csv"
	"github.com/leat-go/leat/loader/internal/drain"
	"github.com/leat-go/leat/loader/source"
)

// The race detector has the compiler allocate what it otherwise does not.
func TestARowAllocatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	require.NoError(t, os.WriteFile(path, []byte("sepal length,sepal width,species,note\n"+strings.Repeat("5.1,-3e2,setosa,\"a \"\"b\"\"\"\n", 4000)), 0o600))
	for _, mapped := range []bool{false, true} {
		d, err := csv.Open(t.Context(), []source.Source{source.Path(path)}, columns, csv.Options{Mapped: mapped})
		require.NoError(t, err)
		allocs, err := drain.Allocs(t.Context(), d, 8)
		require.NoError(t, err)
		require.Zero(t, allocs)
		require.NoError(t, d.Close())
	}
}
