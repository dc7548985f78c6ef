package capture

import (
	"testing"
	"time"

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

// However many uses there were, the next capture is so near that captures take a hundredth of
// the time, or a little less; and they come at all places of whatever is done periodically.
func TestScheduleByItsBudget(t *testing.T) {
	for cost, fewest := range map[time.Duration]int64{0: 16, 10 * time.Microsecond: 33, 150 * time.Microsecond: 500, time.Second: 1 << 40} {
		const use, uses = 30 * time.Microsecond, 1_000_000
		s, c, captures, now, before := schedule{}, class{uses: 1 << 62}, 0, time.Now(), int64(0)
		seen := map[int64]bool{}
		for n := int64(1); n <= uses; n++ {
			now = now.Add(use)
			if !s.due(&c, false) {
				continue
			}
			s.captured(now, now.Add(cost))
			now = now.Add(cost)
			if n > uses/2 && before > uses/2 {
				captures++
				seen[n%37] = true
				require.LessOrEqual(t, n-before, min(fewest+fewest/2, uses/16)+1)
			}
			before = n
		}
		if fewest > uses {
			require.Less(t, captures, 20, "a sixteenth more each time")
			continue
		}
		require.Less(t, int64(captures), uses/2/fewest)
		require.Len(t, seen, 37)
	}
}
