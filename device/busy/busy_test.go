package busy_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/busy"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
)

const ms = time.Millisecond

var card = cpu.Model{
	CopyTime: func(way cpu.Direction, _ int64) time.Duration {
		return map[cpu.Direction]time.Duration{cpu.H2D: 10 * ms, cpu.D2H: 5 * ms}[way]
	},
	KernelTime: func(*device.Launch) time.Duration { return 20 * ms },
}

// A watched device is a device like any other.
func TestConformance(t *testing.T) {
	open := func(index int) func(t *testing.T) *device.Device {
		return func(t *testing.T) *device.Device {
			dev, err := cpu.Open(cpu.Options{Index: index})
			require.NoError(t, err)
			dev, _ = busy.Watch(dev)
			return dev
		}
	}
	devicetest.Run(t, open(0), devicetest.Options{Peer: open(1)})
}

func TestTimesAreThoseOfTheEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, err := cpu.Open(cpu.Options{Model: &card})
		require.NoError(t, err)
		dev, clock := busy.Watch(dev)
		up, err := dev.NewStream(device.StreamOptions{Name: "up"})
		require.NoError(t, err)
		compute, err := dev.NewStream(device.StreamOptions{Name: "compute"})
		require.NoError(t, err)
		b, err := dev.Alloc(64)
		require.NoError(t, err)
		c, err := dev.Alloc(64)
		require.NoError(t, err)
		host := make([]byte, 64)
		kernel := &device.Kernel{Name: "nothing", Go: func(*device.Args) {}}
		launch := &device.Launch{Kernel: kernel, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}

		start := time.Now()
		for range 7 { // side by side
			require.NoError(t, up.CopyH2D(b.View(), host))
			require.NoError(t, compute.Launch(launch))
		}
		require.NoError(t, compute.CopyD2H(make([]byte, 64), c.View()))
		times, err := clock.Take(t.Context())
		require.NoError(t, err)
		require.Equal(t, busy.Times{H2D: 70 * ms, Kernels: 140 * ms, D2H: 5 * ms}, times)
		require.Equal(t, 145*ms, time.Since(start))

		times, err = clock.Take(t.Context())
		require.NoError(t, err)
		require.Zero(t, times, "since the last call")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, up.CopyH2D(b.View(), host))
		_, err = clock.Take(ctx)
		require.ErrorIs(t, err, context.Canceled)
		times, err = clock.Take(t.Context())
		require.NoError(t, err)
		require.Equal(t, busy.Times{H2D: 10 * ms}, times, "nothing is lost")
		for _, closing := range []func() error{up.Close, compute.Close, b.Close, c.Close, dev.Close} {
			require.NoError(t, closing())
		}
	})
}

// What fails beneath is the caller's error, and nothing is lost or left behind.
func TestFailures(t *testing.T) {
	for _, op := range []devicetest.Op{devicetest.NewEvent, devicetest.Record, devicetest.CopyH2D} {
		for nth := int64(1); nth <= 2; nth++ {
			d, err := cpu.New(cpu.Options{})
			require.NoError(t, err)
			tap := devicetest.NewTap(d)
			dev, clock := busy.Watch(device.New(tap))
			s, err := dev.NewStream(device.StreamOptions{})
			require.NoError(t, err)
			b, err := dev.Alloc(8)
			require.NoError(t, err)
			armed := tap.Arm(devicetest.Rule{Op: op, Nth: nth, Err: device.ErrFault})
			failed := 0
			for range 3 {
				if err := s.CopyH2D(b.View(), make([]byte, 8)); err != nil {
					require.ErrorIs(t, err, device.ErrFault)
					failed++
				}
			}
			require.EqualValues(t, 1, armed.Fired(), "%v", op)
			require.Equal(t, 1, failed, "%v", op)
			_, err = clock.Take(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Close())
			require.NoError(t, b.Close())
			require.NoError(t, dev.Close(), "%v", op)
		}
	}
}

// Notes of the device beneath are the watched one's too.
func TestNotes(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{Model: &card})
	require.NoError(t, err)
	dev.Note("asked for")
	watched, _ := busy.Watch(dev)
	require.Equal(t, dev.Notes(), watched.Notes())
	require.Equal(t, dev.String(), watched.String())
	require.NoError(t, watched.Close())
}

// A copy of a modelled H200 is measured: twice 64 MiB travel in 2.4 ms.
func Example() {
	const size = 64 << 20
	h200 := cpu.H200()
	dev, err := cpu.Open(cpu.Options{Model: &h200})
	check(err)
	dev, clock := busy.Watch(dev)
	defer dev.Close()
	s, err := dev.NewStream(device.StreamOptions{})
	check(err)
	defer s.Close()
	host, err := dev.AllocHost(size, device.HostOptions{})
	check(err)
	defer host.Close()
	x, err := dev.Alloc(size)
	check(err)
	defer x.Close()

	check(s.Launch(cpu.Busy(100 * time.Millisecond))) // the device has work, and the host runs ahead
	check(s.CopyH2D(x.View(), host.Bytes()))
	check(s.CopyH2D(x.View(), host.Bytes()))
	times, err := clock.Take(context.Background())
	check(err)
	fmt.Println("copies to the device:", times.H2D.Round(10*time.Microsecond))
	fmt.Println("copies from it:", times.D2H)
	// Output:
	// copies to the device: 2.42ms
	// copies from it: 0s
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
