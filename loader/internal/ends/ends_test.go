package ends_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/loader/internal/ends"
)

func TestSamplesAreFoundInTheirFiles(t *testing.T) {
	var e ends.Ends
	require.Zero(t, e.Len())
	for _, n := range []int64{0, 2, 0, 3, 0} {
		require.True(t, e.Add(n))
	}
	require.Equal(t, 5, e.Len())
	for index, want := range [][2]int{{1, 0}, {1, 1}, {3, 0}, {3, 1}, {3, 2}} {
		file, at := e.Locate(index)
		require.Equal(t, want, [2]int{file, at}, "sample %d", index)
	}
	require.False(t, e.Add(math.MaxInt64))
	require.False(t, e.Add(-1))
	require.Equal(t, 5, e.Len())
}
