package observe_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/observe"
)

func TestAHistogramTellsHowManyAreShorter(t *testing.T) {
	var h observe.Histogram
	require.Zero(t, h.Below(time.Hour))
	for _, d := range []time.Duration{0, 7, 8, 1023, 1024, 1025, 1 << 30, 24 * time.Hour} {
		h.Add(d, 1)
	}
	for d, want := range map[time.Duration]int64{0: 0, 7: 1, 8: 2, 1024: 4, 2048: 6, 1 << 30: 6, 1 << 31: 7} {
		require.Equal(t, want, h.Below(d), "%d ns", d)
	}
	require.EqualValues(t, 8, h.Count())
}
