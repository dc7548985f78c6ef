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

// CopyPeer takes memory of the stream's device and of one peer, and nothing else.
func TestCopyPeerKeepsToTwoDevices(t *testing.T) {
	var devs [3]*device.Device
	var views [3]device.View
	for i := range devs {
		var err error
		devs[i], err = cpu.Open(cpu.Options{Index: i})
		require.NoError(t, err)
		defer devs[i].Close()
		b := buffer(t, devs[i], 8)
		defer b.Close()
		views[i] = b.View()
	}
	gone := buffer(t, devs[1], 8)
	require.NoError(t, gone.Close())
	s, err := devs[0].NewStream(device.StreamOptions{Name: "s"})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.CopyPeer(views[0], views[1]))
	require.NoError(t, s.CopyPeer(views[1], views[0]))
	for want, err := range map[string]error{
		"belongs to neither":            s.CopyPeer(views[1], views[2]),
		"stream \"s\" belongs":          s.CopyPeer(views[2], views[2]),
		"buffer was closed before":      s.CopyPeer(gone.View(), views[0]),
		"memory's buffer was closed":    s.CopyPeer(views[0], gone.View()),
		"one side has 8 bytes, the oth": s.CopyPeer(views[0], views[1].Slice(0, 4)),
	} {
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, s.Synchronize(t.Context()))
}
