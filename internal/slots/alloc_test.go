package slots_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/slots"
)

// A slot has room for its reads before the first.
func TestASlotsFirstLapAllocatesNothing(t *testing.T) {
	const laps = 20
	r := newRig(t, 1+laps, 1)
	streams := []*device.Stream{r.stream("a"), r.stream("b"), r.stream("c"), r.stream("d")}
	lap := func() {
		s, none := r.load(1), slots.Uses{}
		for _, stream := range streams {
			require.NoError(t, s.BeginRead(stream))
			require.NoError(t, s.EndRead(stream))
		}
		require.NoError(t, r.ring.Return(s, &none, true))
	}
	for range 1 + laps { // the device keeps what it makes for the events
		lap()
	}
	require.NoError(t, r.dev.Synchronize(t.Context()))
	require.NoError(t, r.ring.Close())

	r.make(1+laps, 1)
	require.Zero(t, testing.AllocsPerRun(laps, lap))
	r.close(streams...)
}
