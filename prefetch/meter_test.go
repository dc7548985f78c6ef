package prefetch_test

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/prefetch"
)

func TestAMeterNeverWaits(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: modelled(0), Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
		require.NoError(t, err)
		s, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		buffer, err := dev.Alloc(4)
		require.NoError(t, err)
		m, err := prefetch.NewMeter(dev, 4)
		require.NoError(t, err)
		_, number, err := m.Latest()
		require.NoError(t, err)
		require.Zero(t, number)

		start, taken := time.Now(), 0
		for i := range 20 { // a step of 10 ms writes the step's number
			require.NoError(t, s.Launch(cpu.Busy(10*ms)))
			require.NoError(t, s.Memset(buffer.View(), byte(i+1)))
			ok, err := m.Push(s, buffer.View())
			require.NoError(t, err)
			if ok {
				taken++
			}
		}
		require.Zero(t, time.Since(start))
		require.Equal(t, 16, taken, "what doesn't fit is left out")
		for step := 1; step <= 16; step++ {
			time.Sleep(10*ms + 1)
			value, number, err := m.Latest()
			require.NoError(t, err)
			require.EqualValues(t, step, number)
			require.EqualValues(t, uint32(step)*0x01010101, binary.LittleEndian.Uint32(value))
		}
		require.NoError(t, s.Synchronize(t.Context()))
		for i := range 40 { // and once there is room it takes all
			require.NoError(t, s.Memset(buffer.View(), byte(i)))
			ok, err := m.Push(s, buffer.View())
			require.NoError(t, err)
			require.True(t, ok)
			require.NoError(t, s.Synchronize(t.Context()))
			value, _, err := m.Latest()
			require.NoError(t, err)
			require.Equal(t, byte(i), value[0])
		}
		require.NoError(t, m.Close())
		require.NoError(t, buffer.Close())
		require.NoError(t, s.Close())
		require.NoError(t, dev.Close())
	})
}

func TestATableIsUploadedOnceAndPartialResultsMeet(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: engines(modelled(5*ms), 3), Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
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
		fill(host, 11)

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
		dev, err := cpu.Open(cpu.Options{Model: modelled(0)})
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
