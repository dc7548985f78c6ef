package meter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/meter"
)

// Sixteen values can be under way; what doesn't fit is left out, and counted.
func TestAMeterNeverWaits(t *testing.T) {
	const ms = time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: &cpu.Model{}, Adversary: &cpu.Adversary{Poison: true, LateRead: true}})
		require.NoError(t, err)
		s, err := dev.NewStream(device.StreamOptions{})
		require.NoError(t, err)
		buffer, err := dev.Alloc(4)
		require.NoError(t, err)
		m, err := meter.New[uint32](dev)
		require.NoError(t, err)
		_, number, err := m.Latest()
		require.NoError(t, err)
		require.Zero(t, number)

		start := time.Now()
		for i := range 20 { // a step of 10 ms writes the step's number
			require.NoError(t, s.Launch(cpu.Busy(10*ms)))
			require.NoError(t, s.Memset(buffer.View(), byte(i+1)))
			require.NoError(t, m.Push(s, buffer.View()))
		}
		require.Zero(t, time.Since(start))
		for step := 1; step <= 20; step++ {
			time.Sleep(10*ms + 1)
			value, number, err := m.Latest()
			require.NoError(t, err)
			require.EqualValues(t, min(step, 16), number)
			require.EqualValues(t, min(step, 16)*0x01010101, value)
		}
		require.NoError(t, s.Synchronize(t.Context()))
		for i := range 40 { // and once there is room it takes all
			require.NoError(t, s.Memset(buffer.View(), byte(i)))
			require.NoError(t, m.Push(s, buffer.View()))
			require.NoError(t, s.Synchronize(t.Context()))
			value, number, err := m.Latest()
			require.NoError(t, err)
			require.EqualValues(t, 20+i+1, number)
			require.EqualValues(t, i*0x01010101, value)
		}
		require.NoError(t, m.Close())
		require.NoError(t, buffer.Close())
		require.NoError(t, s.Close())
		require.NoError(t, dev.Close())
	})
}

// What lies in device memory as a struct or an array comes back as one.
func TestAMeterOfSeveralNumbers(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	memory, err := dev.Alloc(16)
	require.NoError(t, err)
	require.NoError(t, s.CopyH2D(memory.View(), []byte{1, 0, 0, 0, 0, 0, 0x80, 0x3f, 2, 0, 0, 0, 0, 0, 0, 0x40}))

	type score struct {
		Step uint32
		Loss float32
	}
	one, err := meter.New[score](dev)
	require.NoError(t, err)
	require.NoError(t, one.Push(s, memory.View().Slice(0, 8)))
	both, err := meter.New[[2]score](dev)
	require.NoError(t, err)
	require.NoError(t, both.Push(s, memory.View()))
	require.NoError(t, s.Synchronize(t.Context()))
	a, _, err := one.Latest()
	require.NoError(t, err)
	require.Equal(t, score{1, 1}, a)
	b, _, err := both.Latest()
	require.NoError(t, err)
	require.Equal(t, [2]score{{1, 1}, {2, 2}}, b)
	require.NoError(t, one.Close())
	require.NoError(t, both.Close())
	require.NoError(t, memory.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}

// What no device can write, and what is missing, is refused at once.
func TestAMeterRefusesWhatItCannotShow(t *testing.T) {
	_, err := meter.New[float32](nil)
	require.ErrorContains(t, err, "needs a device")
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	for want, is := range map[string]func() error{
		"New of string":                refusal[string](dev),
		"New of *float32":              refusal[*float32](dev),
		"New of []float32":             refusal[[]float32](dev),
		"New of interface {}":          refusal[any](dev),
		"New of struct {}":             refusal[struct{}](dev),
		"New of [0]int32":              refusal[[0]int32](dev),
		"New of [2]struct { A *int8 }": refusal[[2]struct{ A *int8 }](dev),
		"New of uintptr":               refusal[uintptr](dev),
	} {
		require.ErrorContains(t, is(), want)
	}
	require.Zero(t, dev.Usage().Events+dev.Usage().HostBuffers)
	require.NoError(t, dev.Close())
}

func refusal[T any](dev *device.Device) func() error {
	return func() error {
		_, err := meter.New[T](dev)
		return err
	}
}
