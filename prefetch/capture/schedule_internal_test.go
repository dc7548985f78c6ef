package capture

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchedule(t *testing.T) {
	var s schedule
	var c class
	var got []int
	for n := 1; n <= 140; n++ {
		if s.due(&c, false) {
			got = append(got, n)
		}
	}
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 23, 25, 27, 29, 31, 32, 33,
		36, 39, 42, 45, 48, 50, 51, 55, 59, 63, 64, 65, 70, 75, 80, 86, 92, 98, 100, 101, 108, 115, 123, 128, 129, 138}, got)

	// Another shape of batches, later, has its own first uses; what is captured anyway
	// puts off the next.
	var rare class
	got = nil
	for n := 1; n <= 9; n++ {
		if s.due(&rare, false) {
			got = append(got, n)
		}
	}
	require.Equal(t, []int{1, 2, 4, 8}, got)
	require.True(t, s.due(&c, true))
	for range 9 {
		require.False(t, s.due(&c, false))
	}
}
