package serve

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is known of batches beside others is of use for as long as it is fresh, and then what
// is known of those beside fewer.
func TestAForecastDoesNotLast(t *testing.T) {
	f := newForecast(3)
	require.Zero(t, f.of(2, 0), "nothing is known")
	f.note(0, 10*time.Millisecond, 20*time.Millisecond)
	f.note(2, time.Second, 2*time.Second)
	require.Equal(t, time.Second, f.of(2, 3*time.Second))
	require.Equal(t, 10*time.Millisecond, f.of(1, 3*time.Second))
	require.Equal(t, time.Second, f.of(2, (2+stale)*time.Second))
	require.Equal(t, 10*time.Millisecond, f.of(2, (2+stale)*time.Second+1))
	f.note(2, 600*time.Millisecond, time.Hour)
	require.Equal(t, 900*time.Millisecond, f.of(2, time.Hour), "each counts a quarter less than the one after it")
}
