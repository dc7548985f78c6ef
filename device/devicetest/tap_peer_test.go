package devicetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

// A wait for another Tap's event is found by that event's name, and dropping it is
// noticed: the copy then fetches what was there before.
func TestTapSwallowsAWaitForAPeer(t *testing.T) {
	for name, c := range map[string]struct {
		rule *devicetest.Rule
		want byte
	}{
		"no rule":           {nil, 2},
		"by event":          {&devicetest.Rule{Op: devicetest.Wait, Event: "written"}, 1},
		"by stream":         {&devicetest.Rule{Op: devicetest.Wait, Stream: "reader"}, 1},
		"another event":     {&devicetest.Rule{Op: devicetest.Wait, Event: "read"}, 2},
		"the copy":          {&devicetest.Rule{Op: devicetest.CopyPeer, Nth: 2}, 1},
		"the writer's copy": {&devicetest.Rule{Op: devicetest.CopyPeer, Stream: "writer"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, _ := tapped(t, cpu.Options{Model: &cpu.Model{}})
				there, tap := tapped(t, cpu.Options{Index: 1, Model: &cpu.Model{}})
				if c.rule != nil {
					c.rule.Swallow = true
					tap.Arm(*c.rule)
				}
				require.Equal(t, c.want, fetch(t, here, there))
				require.EqualValues(t, 1, tap.Count(devicetest.Wait))
				require.EqualValues(t, 2, tap.Count(devicetest.CopyPeer))
				require.NoError(t, errors.Join(here.Close(), there.Close()))
			})
		})
	}
}

// fetch writes 1 on one device, which another fetches, and then 2 slowly, which the
// other waits for and fetches.
func fetch(t *testing.T, here, there *device.Device) byte {
	ctx := context.Background()
	writer, err := here.NewStream(device.StreamOptions{Name: "writer"})
	require.NoError(t, err)
	reader, err := there.NewStream(device.StreamOptions{Name: "reader"})
	require.NoError(t, err)
	written, err := here.NewEvent(device.EventOptions{Name: "written"})
	require.NoError(t, err)
	v, err := here.Alloc(1)
	require.NoError(t, err)
	w, err := there.Alloc(1)
	require.NoError(t, err)
	h, err := there.AllocHost(1, device.HostOptions{})
	require.NoError(t, err)
	require.NoError(t, errors.Join(
		writer.Memset(v.View(), 1), writer.Synchronize(ctx),
		reader.CopyPeer(w.View(), v.View()), reader.Synchronize(ctx),
		writer.Launch(cpu.Busy(time.Millisecond)), writer.Memset(v.View(), 2), writer.Record(written),
		reader.Wait(written), reader.CopyPeer(w.View(), v.View()), reader.CopyD2H(h.Bytes(), w.View()), reader.Synchronize(ctx),
	))
	read := h.Bytes()[0]
	require.NoError(t, writer.Synchronize(ctx))
	require.NoError(t, errors.Join(writer.Close(), reader.Close(), written.Close(), v.Close(), w.Close(), h.Close()))
	return read
}
