//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// openDevice opens one fake GPU as programs do.
func openDevice(t *testing.T, table *symbols, index int) *device.Device {
	d, err := open(table, Options{Index: index}, nil)
	require.NoError(t, err)
	return device.New(d)
}

// CUDA gives handles of freed objects out again, so a second Close must not reach it.
func TestASecondCloseReachesNoDriver(t *testing.T) {
	f, table := newFake(t)
	dev := openDevice(t, table, 0)
	s, err := dev.NewStream(device.StreamOptions{Name: "s"})
	require.NoError(t, err)
	e, err := dev.NewEvent(device.EventOptions{Name: "e"})
	require.NoError(t, err)
	j, err := dev.NewJunction()
	require.NoError(t, err)
	b, err := dev.Alloc(64)
	require.NoError(t, err)
	h, err := dev.AllocHost(64, device.HostOptions{})
	require.NoError(t, err)
	r, err := dev.RegisterHost(make([]byte, 4096), device.HostOptions{})
	require.NoError(t, err)
	all := []func() error{s.Close, e.Close, j.Close, b.Close, h.Close, r.Close}
	for _, closing := range all {
		require.NoError(t, closing())
	}
	f.reset()
	for _, closing := range all {
		require.NoError(t, closing())
	}
	for name, err := range map[string]error{
		"stream": s.Record(e), "event": e.Synchronize(t.Context()), "memory": s.Memset(b.View(), 1), "junction": j.Fork(s, s),
	} {
		require.ErrorIs(t, err, device.ErrInvalid, name)
		require.ErrorContains(t, err, "closed before", name)
	}
	require.Empty(t, f.callNames())

	u := dev.Usage()
	u.Allocations = 0
	require.Equal(t, device.Usage{}, u)
	require.NoError(t, dev.Close())
	f.reset()
	require.NoError(t, dev.Close())
	require.Empty(t, f.callNames())
	f.requireNoContext()
}

// What CUDA refuses to free is freed by the next Close; after a fault every Close says
// which, and calls nothing.
func TestACloseThatFailed(t *testing.T) {
	f, table := newFake(t)
	dev := openDevice(t, table, 0)
	s, err := dev.NewStream(device.StreamOptions{Name: "s"})
	require.NoError(t, err)
	e, err := dev.NewEvent(device.EventOptions{Name: "e"})
	require.NoError(t, err)
	b, err := dev.Alloc(64)
	require.NoError(t, err)
	small, err := dev.AllocHost(64, device.HostOptions{})
	require.NoError(t, err)
	large, err := dev.AllocHost(mappedFrom, device.HostOptions{})
	require.NoError(t, err)
	r, err := dev.RegisterHost(make([]byte, 4096), device.HostOptions{})
	require.NoError(t, err)
	for _, x := range []struct {
		function string
		close    func() error
	}{
		{"cuStreamDestroy_v2", s.Close}, {"cuEventDestroy_v2", e.Close}, {"cuMemFree_v2", b.Close},
		{"cuMemFreeHost", small.Close}, {"cuMemHostUnregister", large.Close}, {"cuMemHostUnregister", r.Close},
	} {
		before := dev.Usage()
		f.fail(x.function, invalidValue)
		require.ErrorIs(t, x.close(), device.ErrInvalid, x.function)
		require.Equal(t, before, dev.Usage(), x.function)
		f.reset()
		require.NoError(t, x.close(), x.function)
		require.Equal(t, []string{x.function}, f.callNames())
		require.NotEqual(t, before, dev.Usage(), x.function)
	}

	s, err = dev.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	h, err := dev.AllocHost(64, device.HostOptions{})
	require.NoError(t, err)
	f.fail("cuMemFreeHost", 700)
	require.ErrorIs(t, h.Close(), device.ErrFault)
	f.reset()
	require.ErrorIs(t, h.Close(), device.ErrFault)
	require.ErrorIs(t, s.Close(), device.ErrFault)
	require.Empty(t, f.callNames())
	require.NoError(t, dev.Close())
}

// An address of one GPU means other bytes on another, or a fault: no call gets there.
func TestMemoryOfAnotherGPUReachesNoDriver(t *testing.T) {
	f, table := newFake(t)
	dev, other := openDevice(t, table, 0), openDevice(t, table, 1)
	s, err := dev.NewStream(device.StreamOptions{Name: "s"})
	require.NoError(t, err)
	own, err := dev.Alloc(64)
	require.NoError(t, err)
	b, err := other.Alloc(64)
	require.NoError(t, err)
	e, err := other.NewEvent(device.EventOptions{Name: "e"})
	require.NoError(t, err)
	f.reset()
	v, host := b.View(), make([]byte, 64)
	l := device.Launch{Kernel: &device.Kernel{Name: "scale", Module: &device.Module{Name: "test", PTX: testPTX}}, Grid: [3]uint32{1}, Block: [3]uint32{1}}
	own.View().In(&l.Args)
	v.In(&l.Args)
	for name, err := range map[string]error{
		"CopyH2D": s.CopyH2D(v, host), "CopyD2H": s.CopyD2H(host, v), "Memset": s.Memset(v, 1), "Launch": s.Launch(&l),
		"CopyD2D to": s.CopyD2D(v, own.View()), "CopyD2D from": s.CopyD2D(own.View(), v), "Uses": s.Uses(v, device.In),
		"Record": s.Record(e),
	} {
		require.ErrorIs(t, err, device.ErrInvalid, name)
		require.ErrorContains(t, err, "belongs to cuda:1", name)
	}
	require.ErrorIs(t, s.CopyPeer(v, v), device.ErrInvalid)
	require.Empty(t, f.callNames())
	require.NoError(t, s.CopyPeer(v, own.View()))
	for _, closing := range []func() error{s.Close, own.Close, b.Close, e.Close, dev.Close, other.Close} {
		require.NoError(t, closing())
	}
	f.requireNoContext()
}
