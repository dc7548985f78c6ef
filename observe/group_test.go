package observe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe"
	"github.com/leat-go/leat/prefetch"
	"github.com/leat-go/leat/prefetch/group"
)

// Each device of a group is told to a recorder of its own.
func TestTheDevicesOfAGroupHaveSnapshotsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &load{samples: 200, read: same(30 * ms)}
		ld, err := loader.New(l, 2, loader.Options{Workers: 2, Last: loader.Drop, Epochs: 1})
		require.NoError(t, err)
		var streams []*device.Stream
		for range 2 {
			dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{CopyTime: func(cpu.Direction, int64) time.Duration { return ms }}})
			require.NoError(t, err)
			s, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		rec := observe.NewRecorder(observe.Options{})
		g, err := group.New(streams, ld, prefetch.Options{Recorder: rec, Timing: true})
		require.NoError(t, err)
		for step, err := range g.All(t.Context()) {
			require.NoError(t, err)
			for i, b := range step.Batches {
				require.NoError(t, b.Stream().Launch(cpu.Busy(time.Duration(1+i)*5*ms)))
			}
		}
		for _, s := range streams {
			require.NoError(t, s.Device().Synchronize(context.Background()))
		}
		devices := observe.TakeGroup(g)
		require.Len(t, devices, 2)
		for i, s := range devices {
			require.EqualValues(t, 100, s.Host.Steps)
			require.EqualValues(t, 100, s.Reads.Samples)
			require.EqualValues(t, 100, s.Device.Uploads)
			require.NotZero(t, rec.Member(i).(*observe.Recorder).Timeline("").Length)
		}
		require.Zero(t, rec.Timeline("").Length)
		require.NoError(t, g.Close())
		for _, s := range streams {
			dev := s.Device()
			require.NoError(t, s.Close())
			require.NoError(t, dev.Close())
		}
	})
}
