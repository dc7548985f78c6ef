package compose

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lists of few and of many samples are the same list, but for the memory.
func TestListsOfBothWidthsAreAlike(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no dataset is so long where an int has 32 bits")
	}
	most := math.MaxInt >> (strconv.IntSize/2 - 1) // 2³²-1
	narrow, wide := newList(most, 3), newList(most+1, 3)
	for _, l := range []*list{narrow, wide} {
		for _, index := range []int{5, most - 1, 0} {
			l.add(index)
		}
		l.set(2, 9)
		require.Equal(t, 3, l.len())
		require.Equal(t, []int{5, most - 1, 9}, []int{l.get(0), l.get(1), l.get(2)})
	}
	require.Len(t, narrow.narrow, 3)
	require.Len(t, wide.wide, 3)
	require.Equal(t, narrow.hash(), wide.hash())
	wide.set(0, most)
	require.Equal(t, most, wide.get(0))
}
