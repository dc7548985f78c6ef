//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/driver"
)

// openPeers opens both devices of a fake, and checks when the test ends that no
// thread was left with a context.
func openPeers(t *testing.T) (f *fake, here, there *gpu) {
	f, s := newFake(t)
	both := [2]*gpu{}
	for i := range both {
		d, err := open(s, Options{Index: i}, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		both[i] = d
	}
	t.Cleanup(f.requireNoContext)
	f.reset()
	return f, both[0], both[1]
}

func place(d *gpu, p driver.Address) driver.Place { return driver.Place{Device: d, Address: p} }

const (
	firstContext  = uintptr(fakeContext)
	secondContext = uintptr(fakeContext + fakeContextStep)
)

// The first copy opens the memory of each to the other, with each one's own context
// current; the copies name the contexts of both sides in the driver's order.
func TestCopyPeerArguments(t *testing.T) {
	f, here, there := openPeers(t)
	s := newStream(t, here)
	f.reset()
	require.NoError(t, here.CopyPeer(s, place(there, 0xd00), place(here, 0x500), 77))
	calls := f.recorded()
	require.Equal(t, []string{
		"cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuMemcpyPeerAsync",
	}, f.callNames())
	require.Equal(t, []uintptr{0, 1}, calls[0].args[1:3])
	require.Equal(t, []uintptr{secondContext, 0}, calls[1].args[:2])
	require.Equal(t, []uintptr{1, 0}, calls[2].args[1:3])
	require.Equal(t, []uintptr{firstContext, 0}, calls[3].args[:2])
	require.Equal(t, []uintptr{0xd00, secondContext, 0x500, firstContext, 77, uintptr(s)}, calls[4].args[:6])
	for i, context := range []uintptr{firstContext, firstContext, secondContext, secondContext, firstContext} {
		require.Equal(t, context, calls[i].context, calls[i].name)
	}

	f.reset()
	require.NoError(t, here.CopyPeer(s, place(here, 0x500), place(there, 0xd00), 1<<33))
	require.Equal(t, []string{"cuMemcpyPeerAsync"}, f.callNames(), "the way is set up once")
	require.Equal(t, []uintptr{0x500, firstContext, 0xd00, secondContext, 1 << 33, uintptr(s)}, f.recorded()[0].args[:6])
	require.Equal(t, firstContext, f.recorded()[0].context)
}

// A stream of the other side makes the copy with that side's context.
func TestCopyPeerInTheOtherStream(t *testing.T) {
	f, here, there := openPeers(t)
	s := newStream(t, there)
	require.NoError(t, there.CopyPeer(s, place(there, 0xd00), place(here, 0x500), 77))
	last := f.recorded()[len(f.recorded())-1]
	require.Equal(t, []uintptr{0xd00, secondContext, 0x500, firstContext, 77, uintptr(s)}, last.args[:6])
	require.Equal(t, secondContext, last.context)
}

// Another library may have set the way up; there may be none, or too many. None of
// it keeps the copy from being made.
func TestTheWayBetweenGPUs(t *testing.T) {
	const tooManyPeers = 711
	for name, c := range map[string]struct {
		spoil  func(f *fake)
		opened int // how often it is tried
		reason string
	}{
		"set up already": {func(f *fake) { f.fail("cuCtxEnablePeerAccess", peerAccessAlreadyEnabled) }, 2, ""},
		"none": {func(f *fake) {
			f.does("cuDeviceCanAccessPeer", func(a []uintptr) result { write(a[0], int32(0)); return success })
		}, 0, "CUDA error 217"},
		"unsupported": {func(f *fake) { f.fail("cuCtxEnablePeerAccess", peerAccessUnsupported) }, 2, "CUDA error 217"},
		"too many":    {func(f *fake) { f.fail("cuCtxEnablePeerAccess", tooManyPeers) }, 2, "CUDA error 711"},
	} {
		t.Run(name, func(t *testing.T) {
			f, here, there := openPeers(t)
			s := newStream(t, here)
			before := len(here.Properties().Notes)
			f.reset()
			c.spoil(f)
			require.NoError(t, here.CopyPeer(s, place(there, 1), place(here, 1), 1))
			names := f.callNames()
			require.Equal(t, "cuMemcpyPeerAsync", names[len(names)-1])
			opened := 0
			for _, name := range names {
				if name == "cuCtxEnablePeerAccess" {
					opened++
				}
			}
			require.Equal(t, c.opened, opened)
			notes := here.Properties().Notes[before:]
			if c.reason == "" {
				require.Empty(t, notes)
				return
			}
			require.Len(t, notes, 1)
			require.Contains(t, notes[0], "cuda:0 can't reach the memory of cuda:1")
			require.Contains(t, notes[0], c.reason)
		})
	}
}

// Without the functions that set the way up the driver copies all the same.
func TestPeersOfAnOlderDriver(t *testing.T) {
	f, here, there := openPeers(t)
	s := newStream(t, here)
	here.cu.ctxEnablePeerAccess = 0
	f.reset()
	require.NoError(t, here.CopyPeer(s, place(there, 1), place(here, 1), 1))
	require.Equal(t, []string{"cuMemcpyPeerAsync"}, f.callNames())
	here.cu.memcpyPeerAsync = 0
	require.ErrorIs(t, here.CopyPeer(s, place(there, 1), place(here, 1), 1), driver.ErrUnsupported)
}

// A fault found while the way is set up is that device's, and is reported as such.
func TestAFaultBetweenGPUs(t *testing.T) {
	f, here, there := openPeers(t)
	s, e := newStream(t, here), newEvent(t, there)
	calls := 0
	f.does("cuCtxEnablePeerAccess", func([]uintptr) result {
		if calls++; calls == 2 {
			return 700
		}
		return success
	})
	err := here.CopyPeer(s, place(there, 1), place(here, 1), 1)
	require.ErrorIs(t, err, driver.ErrFault)
	require.ErrorContains(t, err, "cuda:1")
	require.Same(t, err, here.WaitPeer(s, there, e))
	require.Same(t, err, here.CopyPeer(s, place(here, 1), place(there, 1), 1))
	require.NoError(t, here.Memset(s, 1, 1, 1), "the other GPU is well")
}

// Two Devices of one GPU share its context, which has no way to itself to set up.
func TestCopyPeerWithinOneContext(t *testing.T) {
	f, here, _ := openPeers(t)
	again, err := open(here.cu, Options{}, nil)
	require.NoError(t, err)
	s := newStream(t, here)
	f.reset()
	require.NoError(t, here.CopyPeer(s, place(again, 0xd00), place(here, 0x500), 77))
	require.Equal(t, []string{"cuMemcpyDtoDAsync_v2"}, f.callNames())
	require.Equal(t, []uintptr{0xd00, 0x500, 77, uintptr(s)}, f.recorded()[0].args[:4])
	require.NoError(t, again.Close())
}

func TestCopyPeerRefuses(t *testing.T) {
	f, here, there := openPeers(t)
	s := newStream(t, here)
	third, err := open(here.cu, Options{}, nil)
	require.NoError(t, err)
	f.reset()
	for why, do := range map[string]func() error{
		"one side is on no GPU": func() error { return here.CopyPeer(s, driver.Place{Address: 1}, place(here, 1), 1) },
		"neither":               func() error { return here.CopyPeer(s, place(there, 1), place(third, 1), 1) },
		"-1 bytes":              func() error { return here.CopyPeer(s, place(there, 1), place(here, 1), -1) },
	} {
		require.ErrorIs(t, do(), driver.ErrInvalid)
		require.ErrorContains(t, do(), why)
	}
	require.NoError(t, third.Close())
	require.ErrorIs(t, here.CopyPeer(s, place(third, 1), place(here, 1), 1), driver.ErrClosed)
	require.NotContains(t, f.callNames(), "cuMemcpyPeerAsync")
	require.ErrorIs(t, here.CopyPeer(0x99, place(there, 1), place(here, 1), 1), driver.ErrInvalid)
}

// The stream's context is current, and the event is the other device's.
func TestWaitPeer(t *testing.T) {
	f, here, there := openPeers(t)
	s, e, mine := newStream(t, here), newEvent(t, there), newEvent(t, here)
	f.reset()
	require.NoError(t, here.WaitPeer(s, there, e))
	calls := f.recorded()
	require.Equal(t, []string{"cuStreamWaitEvent"}, f.callNames())
	require.Equal(t, []uintptr{uintptr(s), uintptr(e), 0}, calls[0].args[:3])
	require.Equal(t, firstContext, calls[0].context)

	f.reset()
	require.ErrorIs(t, here.WaitPeer(s, there, mine), driver.ErrInvalid, "not an event of the other device")
	require.ErrorIs(t, here.WaitPeer(noStream, there, e), driver.ErrInvalid, "not a stream of this one")
	require.ErrorIs(t, here.WaitPeer(s, nil, e), driver.ErrInvalid)
	require.NoError(t, there.FreeEvent(e))
	require.ErrorIs(t, here.WaitPeer(s, there, e), driver.ErrInvalid, "freed")
	require.NotContains(t, f.callNames(), "cuStreamWaitEvent")
	require.False(t, here.PeerOf(nil))
}

// noStream is no stream's handle.
const noStream driver.Stream = 0x99

// Through package device, and with a wrapper on one side.
func TestPeersThroughTheFacade(t *testing.T) {
	f, here, there := openPeers(t)
	tap := devicetest.NewTap(there)
	first, second := device.New(here), device.New(tap)
	require.True(t, first.PeerOf(second))
	require.True(t, second.PeerOf(first))
	s, err := second.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	e, err := first.NewEvent(device.EventOptions{})
	require.NoError(t, err)
	r, err := first.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Record(e))
	f.reset()
	require.NoError(t, s.Wait(e))
	require.NoError(t, s.CopyPeer(second.ViewOf(0xd00, 77), first.ViewOf(0x500, 77)))
	require.EqualValues(t, 1, tap.Count(devicetest.Wait))
	require.EqualValues(t, 1, tap.Count(devicetest.CopyPeer))
	names := f.callNames()
	require.Equal(t, "cuStreamWaitEvent", names[0])
	require.Equal(t, "cuMemcpyPeerAsync", names[len(names)-1])
	require.Equal(t, []uintptr{0xd00, secondContext, 0x500, firstContext, 77, uintptr(s.Handle())}, f.recorded()[len(names)-1].args[:6])
}
