package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// alone is a wrapper that knows of no peers.
type alone struct{ driver.Device }

// Where one of two devices can't work with the other the errors are typed, and
// neither device has anything submitted.
func TestDevicesThatAreNoPeers(t *testing.T) {
	one, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	first := device.New(alone{one})
	second, err := cpu.Open(cpu.Options{Index: 1})
	require.NoError(t, err)
	require.True(t, first.PeerOf(first))
	for _, pair := range [][2]*device.Device{{first, second}, {second, first}} {
		here, there := pair[0], pair[1]
		require.False(t, here.PeerOf(there))
		s, err := here.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		e, err := there.NewEvent(device.EventOptions{})
		require.NoError(t, err)
		other, err := there.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, other.Record(e))
		v, err := here.Alloc(8)
		require.NoError(t, err)
		w, err := there.Alloc(8)
		require.NoError(t, err)

		err = s.Wait(e)
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, "another device")
		err = s.CopyPeer(v.View(), w.View())
		require.ErrorIs(t, err, device.ErrUnsupported)
		require.ErrorContains(t, err, there.Name()+" is no peer")
		require.NoError(t, s.CopyPeer(v.View().Slice(0, 4), v.View().Slice(4, 4)), "within one device")
		require.NoError(t, s.Synchronize(t.Context()))
		require.NoError(t, other.Synchronize(t.Context()))
		for _, closing := range []func() error{s.Close, e.Close, other.Close, v.Close, w.Close} {
			require.NoError(t, closing())
		}
	}
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}
