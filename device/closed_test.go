package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

// What is closed is refused by name before the driver is asked, which may have given the
// handle to another; and so is a graph that is of another device or another shape.
func TestTheDriverSeesNothingThatIsClosed(t *testing.T) {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	tap := devicetest.NewTap(drv)
	dev := device.New(tap)
	s, err := dev.NewStream(device.StreamOptions{Name: "open"})
	require.NoError(t, err)
	b, err := dev.Alloc(8)
	require.NoError(t, err)
	capture := func(values ...byte) *device.Graph {
		g, err := s.Capture(func() error {
			for _, value := range values {
				if err := s.Memset(b.View(), value); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		return g
	}
	g, other := capture(1), capture(2)
	x, err := g.Instantiate()
	require.NoError(t, err)
	closedExec, err := g.Instantiate()
	require.NoError(t, err)
	require.NoError(t, closedExec.Close())
	longer := capture(1, 2)
	calls := tap.Calls()
	var difference *device.Difference
	require.ErrorAs(t, x.Update(longer), &difference)
	require.Equal(t, calls, tap.Calls())
	require.NoError(t, longer.Close())
	require.NoError(t, g.Close())
	gone, err := dev.NewStream(device.StreamOptions{Name: "gone"})
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	calls = tap.Calls()
	refused := func(err error, why string) {
		t.Helper()
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, why)
	}
	const stream, graph, exec = `the stream "gone" was closed before`, "the graph was closed before", "the exec was closed before"
	_, err = gone.Capture(func() error { t.Error("the body of a capture on no stream"); return nil })
	refused(err, stream)
	_, err = gone.Capturing()
	refused(err, stream)
	_, err = g.Instantiate()
	refused(err, graph)
	refused(x.Update(g), graph)
	refused(closedExec.Update(other), exec)
	refused(closedExec.Launch(s), exec)
	require.Equal(t, calls, tap.Calls())

	elsewhere, err := cpu.Open(cpu.Options{Index: 1})
	require.NoError(t, err)
	foreign, err := elsewhere.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	empty, err := foreign.Capture(func() error { return nil })
	require.NoError(t, err)
	refused(x.Update(empty), "the graph belongs to "+elsewhere.Name())
	require.Equal(t, calls, tap.Calls())

	require.NoError(t, empty.Close())
	require.NoError(t, foreign.Close())
	require.NoError(t, elsewhere.Close())
	require.NoError(t, x.Close())
	require.NoError(t, other.Close())
	require.NoError(t, b.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}
