//go:build invariants

package slots

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

// Somebody records an event of the slot's in between: the next Wait for it would
// bind to a Record that isn't the one meant, and is reported by name.
func TestAWaitForAnotherLapIsReported(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	stream := func(name string) *device.Stream {
		s, err := dev.NewStream(device.StreamOptions{Name: name})
		require.NoError(t, err)
		return s
	}
	copies, compute, other := stream("copy"), stream("compute"), stream("other")
	s, err := New(dev, Options{Bytes: 1, Reads: 1, Filled: device.EventOptions{Name: "ready"}, Read: device.EventOptions{Name: "consumed"}})
	require.NoError(t, err)
	require.NoError(t, s.BeginWrite(copies))
	require.NoError(t, s.EndWrite(copies))
	require.NoError(t, s.Give(compute))

	require.NoError(t, copies.Record(s.Filled))
	require.ErrorContains(t, s.BeginRead(other), `stream "other" would wait for lap 2 of event "ready 0", lap 1 is meant`)

	require.NoError(t, s.EndRead(compute))
	require.NoError(t, compute.Record(s.reads.list[0].done))
	require.ErrorContains(t, s.BeginWrite(copies), `stream "copy" would wait for lap 2 of event "consumed 0.0", lap 1 is meant`)

	require.NoError(t, dev.Synchronize(t.Context()))
	require.NoError(t, s.Close())
	for _, s := range []*device.Stream{copies, compute, other} {
		require.NoError(t, s.Close())
	}
	require.NoError(t, dev.Close())
}
