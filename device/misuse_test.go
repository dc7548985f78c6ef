package device_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// reckless is a driver that takes what it is given, as a GPU's may: the handles of
// what was freed serve the next that is made. It counts the calls.
type reckless struct {
	driver.Device
	calls int
}

func (r *reckless) FreeStream(driver.Stream) error                      { r.calls++; return nil }
func (r *reckless) FreeEvent(driver.Event) error                        { r.calls++; return nil }
func (r *reckless) Free(driver.Address) error                           { r.calls++; return nil }
func (r *reckless) FreeHost([]byte) error                               { r.calls++; return nil }
func (r *reckless) Record(driver.Event, driver.Stream) error            { r.calls++; return nil }
func (r *reckless) Wait(driver.Stream, driver.Event) error              { r.calls++; return nil }
func (r *reckless) HostFunc(driver.Stream, func()) error                { r.calls++; return nil }
func (r *reckless) StreamDone(driver.Stream) (bool, error)              { r.calls++; return true, nil }
func (r *reckless) EventDone(driver.Event) (bool, error)                { r.calls++; return true, nil }
func (r *reckless) CopyH2D(driver.Stream, driver.Address, []byte) error { r.calls++; return nil }
func (r *reckless) CopyD2H(driver.Stream, []byte, driver.Address) error { r.calls++; return nil }
func (r *reckless) CopyD2D(_ driver.Stream, _, _ driver.Address, _ int64) error {
	r.calls++
	return nil
}
func (r *reckless) Memset(driver.Stream, driver.Address, byte, int64) error { r.calls++; return nil }
func (r *reckless) Launch(driver.Stream, *driver.Launch) error              { r.calls++; return nil }

func openReckless(t *testing.T) (*device.Device, *reckless, *device.Stream) {
	d, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	r := &reckless{Device: d}
	dev := device.New(r)
	s, err := dev.NewStream(device.StreamOptions{Name: "s"})
	require.NoError(t, err)
	return dev, r, s
}

func launch(views ...device.View) *device.Launch {
	l := &device.Launch{Kernel: &device.Kernel{Name: "k", Go: func(*device.Args) {}}, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	for _, v := range views {
		v.In(&l.Args)
	}
	return l
}

// uses are all the ways in which work uses v, of 8 bytes, on s.
func uses(s *device.Stream, v, own device.View) map[string]error {
	host := make([]byte, 8)
	return map[string]error{
		"CopyH2D":      s.CopyH2D(v, host),
		"CopyD2H":      s.CopyD2H(host, v),
		"CopyD2D to":   s.CopyD2D(v, own),
		"CopyD2D from": s.CopyD2D(own, v),
		"Memset":       s.Memset(v, 1),
		"Launch":       s.Launch(launch(v)),
		"Launch after": s.Launch(launch(own, v)),
		"Uses":         s.Uses(v, device.In),
		"CopyPeer":     s.CopyPeer(v, v),
	}
}

func buffer(t *testing.T, d *device.Device, bytes int64) *device.Buffer {
	b, err := d.Alloc(bytes)
	require.NoError(t, err)
	return b
}

// Memory of another device, memory that was freed, and numbers that are no memory:
// the driver, which could corrupt what now lies there, is not asked.
func TestMemoryThatIsNotTheStreams(t *testing.T) {
	d, drv, s := openReckless(t)
	own := buffer(t, d, 8).View()
	for name, err := range uses(s, buffer(t, d, 8).View(), own) {
		require.NoError(t, err, name)
	}
	other, _, _ := openReckless(t)
	freed := buffer(t, d, 16)
	part := freed.View().Slice(4, 8)
	require.NoError(t, freed.Close())
	host, err := d.AllocHost(8, device.HostOptions{})
	require.NoError(t, err)
	hostView, err := host.View()
	require.NoError(t, err)
	require.NoError(t, host.Close())

	drv.calls = 0
	for want, v := range map[string]device.View{
		"another Device of the name cpu": buffer(t, other, 8).View(),
		"the memory's buffer was closed": part,
		"buffer was closed before":       hostView,
		"no memory of 8 bytes":           d.ViewOf(math.MaxUint64-6, 8),
	} {
		for name, err := range uses(s, v, own) {
			require.ErrorIs(t, err, device.ErrInvalid, "%s: %s", want, name)
			var typed *device.Error
			require.ErrorAs(t, err, &typed)
			if name != "CopyPeer" { // it says that the stream belongs to neither
				require.ErrorContains(t, err, want, name)
			}
		}
	}
	for _, v := range []device.View{d.ViewOf(256, -1), d.ViewOf(256, math.MinInt64)} {
		require.ErrorIs(t, s.Memset(v, 1), device.ErrInvalid)
		require.ErrorIs(t, s.CopyD2D(v, v), device.ErrInvalid)
		require.ErrorIs(t, s.CopyPeer(v, v), device.ErrInvalid)
		require.ErrorIs(t, s.Launch(launch(v)), device.ErrInvalid)
	}
	require.ErrorContains(t, s.Launch(launch(own, buffer(t, other, 8).View())), `kernel "k": argument 1`)
	two := buffer(t, d, 12).View()
	require.ErrorIs(t, s.CopyD2D(two.Slice(0, 8), two.Slice(4, 8)), device.ErrInvalid, "the two overlap")
	require.Zero(t, drv.calls)
}

// Every size at its extremes is a typed error, or a panic of our own where it can only
// be the caller's bug.
func TestSizesAtTheirExtremes(t *testing.T) {
	d, err := cpu.Open(cpu.Options{})
	require.NoError(t, err)
	for _, bytes := range []int64{-1, math.MinInt64} {
		_, err := d.Alloc(bytes)
		require.ErrorIs(t, err, device.ErrInvalid)
		_, err = d.AllocHost(bytes, device.HostOptions{})
		require.ErrorIs(t, err, device.ErrInvalid)
	}
	for _, bytes := range []int64{math.MaxInt64, math.MaxInt64 - 255, math.MaxInt64 / 2} {
		_, err := d.Alloc(bytes)
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		for _, o := range []device.HostOptions{{}, {Locked: true}, {Pageable: true}} {
			_, err = d.AllocHost(bytes, o)
			require.ErrorIs(t, err, device.ErrOutOfMemory)
		}
	}
	_, err = d.AllocHost(8, device.HostOptions{Locked: true, Pageable: true})
	require.ErrorContains(t, err, "Pageable is true, want false, since Locked is true")
	_, err = d.AllocHost(8, device.HostOptions{ReadOnly: true})
	require.ErrorContains(t, err, "ReadOnly")
	_, err = d.RegisterHost(make([]byte, 8), device.HostOptions{Pageable: true})
	require.ErrorContains(t, err, "Pageable")
	require.Zero(t, d.Usage().HostBuffers)

	b := buffer(t, d, 8)
	v := b.View()
	for _, s := range [][2]int64{{0, 9}, {9, 0}, {8, 1}, {-1, 1}, {1, -1}, {math.MaxInt64, 1}, {1, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64}, {math.MinInt64, math.MinInt64}, {4, math.MinInt64}} {
		require.Panics(t, func() { v.Slice(s[0], s[1]) }, "%v", s)
	}
	require.EqualValues(t, 0, v.Slice(8, 0).Size())
	require.NoError(t, b.Close())
	require.NoError(t, d.Close())
}

// A launch that CUDA would refuse is refused on every device, before the driver.
func TestLaunchesThatAreTooLarge(t *testing.T) {
	_, drv, s := openReckless(t)
	for _, c := range []struct {
		grid, block [3]uint32
		fine        bool
	}{
		{[3]uint32{1, 1, 1}, [3]uint32{1024, 1, 1}, true},
		{[3]uint32{math.MaxInt32, 65535, 65535}, [3]uint32{4, 4, 64}, true},
		{[3]uint32{1, 0, 0}, [3]uint32{1, 0, 0}, true}, // 0 means 1 in y and z
		{[3]uint32{1 << 31, 1, 1}, [3]uint32{1, 1, 1}, false},
		{[3]uint32{1, 65536, 1}, [3]uint32{1, 1, 1}, false},
		{[3]uint32{1, 1, 65536}, [3]uint32{1, 1, 1}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{1025, 1, 1}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{32, 33, 1}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{1, 1, 65}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{1 << 31, 2, 1}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{1 << 31, 1 << 31, 4}, false},
		{[3]uint32{1, 1, 1}, [3]uint32{math.MaxUint32, math.MaxUint32, math.MaxUint32}, false},
	} {
		l := launch()
		l.Grid, l.Block = c.grid, c.block
		drv.calls = 0
		err := s.Launch(l)
		if c.fine {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, "Grid is")
		require.Zero(t, drv.calls)
	}
}

// None of a grid is refused on every device, and memory may be empty.
func TestALaunchHasABlockAndAThread(t *testing.T) {
	_, drv, s := openReckless(t)
	for want, change := range map[string]func(*device.Launch){
		`kernel "k": Grid is [0 1 1], want at least 1 in x`:  func(l *device.Launch) { l.Grid[0] = 0 },
		`kernel "k": Block is [0 1 1], want at least 1 in x`: func(l *device.Launch) { l.Block[0] = 0 },
	} {
		l := launch()
		change(l)
		drv.calls = 0
		err := s.Launch(l)
		require.ErrorIs(t, err, device.ErrInvalid)
		require.ErrorContains(t, err, want)
		require.Zero(t, drv.calls)
	}
	require.NoError(t, s.Launch(launch(device.View{})))
	require.Equal(t, 1, drv.calls)
}

// What is missing is named, and the driver is not asked.
func TestWhatIsNilIsRefused(t *testing.T) {
	d, drv, s := openReckless(t)
	j, err := d.NewJunction()
	require.NoError(t, err)
	for _, call := range []struct {
		err  error
		what string
	}{
		{s.Wait(nil), "the event is nil"},
		{s.Record(nil), "the event is nil"},
		{s.Launch(nil), "the launch is nil"},
		{s.HostFunc(nil), "no function to run"},
		{j.Fork(nil, s), "a stream is nil"},
		{j.Fork(s, s, nil), "a stream is nil"},
		{j.Join(nil, s), "a stream is nil"},
		{j.Join(s, nil), "a stream is nil"},
	} {
		require.ErrorIs(t, call.err, device.ErrInvalid)
		require.ErrorContains(t, call.err, call.what)
	}
	require.Zero(t, drv.calls)
}
