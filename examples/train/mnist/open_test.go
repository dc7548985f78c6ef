package mnist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/dtype"
)

func TestOpen(t *testing.T) {
	find(t)
	train, test, err := Open(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 60_000, train.Len())
	require.Equal(t, 10_000, test.Len())
	fields := train.Fields()
	require.Len(t, fields, 2)
	require.Equal(t, "image", fields[0].Name)
	require.Equal(t, dtype.Uint8, fields[0].DType)
	require.Equal(t, []int{28, 28}, fields[0].Shape)
	require.Equal(t, "label", fields[1].Name)
	require.Empty(t, fields[1].Shape)

	_, _, err = Open(t.Context(), t.TempDir())
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
}
