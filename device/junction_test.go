package device_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
)

func TestATableIsUploadedOnceAndPartialResultsMeet(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{ComputeEngines: 3, H2D: cpu.Link{Latency: 5 * ms}}, Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
		require.NoError(t, err)
		var streams []*device.Stream
		for range 4 {
			s, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		table, err := dev.Alloc(1 << 10)
		require.NoError(t, err)
		parts, err := dev.Alloc(3 << 10)
		require.NoError(t, err)
		j, err := dev.NewJunction()
		require.NoError(t, err)
		host, back := make([]byte, 1<<10), make([]byte, 3<<10)
		for i := range host {
			host[i] = byte(i * 11)
		}

		start := time.Now()
		require.NoError(t, streams[0].CopyH2D(table.View(), host))
		require.NoError(t, j.Fork(streams[0], streams[1:]...))
		for i, s := range streams[1:] {
			require.NoError(t, s.CopyD2D(parts.View().Slice(int64(i)<<10, 1<<10), table.View()))
			require.NoError(t, s.Launch(cpu.Busy(time.Duration(10*(i+1))*ms)))
		}
		require.NoError(t, j.Join(streams[0], streams[1:]...))
		require.NoError(t, streams[0].CopyD2H(back, parts.View()))
		require.NoError(t, streams[0].Synchronize(t.Context()))
		require.Equal(t, 35*ms, time.Since(start), "the table, and the longest part")
		for i := range 3 {
			require.Equal(t, host, back[i<<10:][:1<<10])
		}
		require.NoError(t, j.Close())
		require.NoError(t, table.Close())
		require.NoError(t, parts.Close())
		for _, s := range streams {
			require.NoError(t, s.Close())
		}
		require.NoError(t, dev.Close())
	})
}

// A batch on a stream of high priority goes before those that wait already.
func TestPrioritiesAreServed(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{}})
		require.NoError(t, err)
		p := dev.Properties()
		require.Less(t, p.HighestPriority, p.LowestPriority)
		start := time.Now()
		done := map[string]time.Duration{}
		for _, s := range []struct {
			name     string
			priority int
		}{{"running", 0}, {"low", p.LowestPriority}, {"high", p.HighestPriority}} {
			stream, err := dev.NewStream(device.StreamOptions{Name: s.name, Priority: s.priority})
			require.NoError(t, err)
			defer stream.Close()
			require.NoError(t, stream.Launch(cpu.Busy(10*ms)))
			require.NoError(t, stream.HostFunc(func() { done[s.name] = time.Since(start) }))
			time.Sleep(time.Nanosecond)
		}
		require.NoError(t, dev.Synchronize(t.Context()))
		require.Less(t, done["running"], done["high"])
		require.Less(t, done["high"], done["low"])
	})
}
