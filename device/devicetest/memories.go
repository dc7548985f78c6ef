package devicetest

import (
	"errors"
	"os"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

func memoryAligned(f *fixture) {
	type span struct{ from, to uint64 }
	var spans []span
	for _, bytes := range []int64{1, 255, 256, 257, 4096, 1 << 20} {
		v := f.buffer(bytes)
		require.Zero(f, uint64(v.Address())%256)
		require.Equal(f, bytes, v.Size())
		spans = append(spans, span{uint64(v.Address()), uint64(v.Address()) + uint64(bytes)})
		h := f.host(bytes)
		require.Len(f, h, int(bytes))
		require.Zero(f, uintptr(unsafe.Pointer(unsafe.SliceData(h)))%uintptr(os.Getpagesize()))
	}
	for i, a := range spans {
		for _, b := range spans[:i] {
			require.True(f, a.to <= b.from || b.to <= a.from, "%v overlaps %v", a, b)
		}
	}
}

func memoryExhausted(f *fixture) {
	_, total, err := f.dev.Memory()
	require.NoError(f, err)
	if total == 0 {
		f.Skip("the device doesn't know its memory's size")
	}
	for range 3 {
		_, err = f.dev.Alloc(total + 1)
		require.ErrorIs(f, err, device.ErrOutOfMemory)
		var e *device.Error
		require.True(f, errors.As(err, &e))
		require.False(f, e.Async)
		require.NotEmpty(f, e.Hint)
	}
	copyPageable(f)
}

func memoryImpossible(f *fixture) {
	_, err := f.dev.Alloc(-1)
	require.ErrorIs(f, err, device.ErrInvalid)
	_, err = f.dev.AllocHost(-1, device.HostOptions{})
	require.ErrorIs(f, err, device.ErrInvalid)
	_, err = f.dev.RegisterHost(nil, device.HostOptions{})
	require.ErrorIs(f, err, device.ErrInvalid)
	f.buffer(0)
	f.host(0)
}

func memoryReturns(f *fixture) {
	before, _, err := f.dev.Memory()
	require.NoError(f, err)
	const bytes = 1 << 16
	for range 50 {
		b, err := f.dev.Alloc(bytes)
		require.NoError(f, err)
		h, err := f.dev.AllocHost(bytes, device.HostOptions{})
		require.NoError(f, err)
		u := f.dev.Usage()
		require.EqualValues(f, bytes, u.DeviceBytes)
		require.EqualValues(f, bytes, u.PinnedBytes)
		f.do(b.Close())
		f.do(h.Close())
	}
	after, _, err := f.dev.Memory()
	require.NoError(f, err)
	require.InDelta(f, before, after, 64<<20, "other programs may use the device too")
}

// Numbers that were never handles, or are no more.
func foreignHandles(f *fixture) {
	d, v := f.dev.Driver(), f.buffer(8)
	for _, h := range []driver.Stream{0, 12345} {
		_, err := d.StreamDone(h)
		require.ErrorIs(f, err, device.ErrInvalid)
		require.ErrorIs(f, d.Memset(h, v.Address(), 0, 8), device.ErrInvalid)
		require.ErrorIs(f, d.SynchronizeStream(f.ctx, h), device.ErrInvalid)
		require.ErrorIs(f, d.FreeStream(h), device.ErrInvalid)
	}
	s := f.stream("s")
	for _, h := range []driver.Event{0, 12345} {
		_, err := d.EventDone(h)
		require.ErrorIs(f, err, device.ErrInvalid)
		require.ErrorIs(f, d.Record(h, s.Handle()), device.ErrInvalid)
		require.ErrorIs(f, d.Wait(s.Handle(), h), device.ErrInvalid)
		require.ErrorIs(f, d.FreeEvent(h), device.ErrInvalid)
	}
	require.ErrorIs(f, d.Free(v.Address()+1), device.ErrInvalid)
	require.ErrorIs(f, d.FreeHost(make([]byte, 8)), device.ErrInvalid)
	require.ErrorIs(f, d.UnregisterHost(make([]byte, 8)), device.ErrInvalid)
	f.synchronize(s)
}

// Each call that is given a View refuses another device's, names that device and
// submits nothing; a stream goes on.
func foreignMemory(f *fixture) {
	other := f.another()
	pinned, err := other.dev.AllocHost(64, device.HostOptions{})
	require.NoError(f, err)
	other.closings = append(other.closings, pinned.Close)
	hostView, err := pinned.View()
	require.NoError(f, err)
	s, own, h := f.stream("s"), f.buffer(64), f.host(64)
	f.do(s.Memset(own, 1))
	for from, v := range map[string]device.View{"device memory": other.buffer(64), "pinned memory": hostView} {
		launch := func(access func(device.View, *device.Args), views ...device.View) error {
			l := &device.Launch{Kernel: increment, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
			for _, v := range views {
				access(v, &l.Args)
			}
			return s.Launch(l)
		}
		for name, err := range map[string]error{
			"CopyH2D":       s.CopyH2D(v, h),
			"CopyD2H":       s.CopyD2H(h, v),
			"CopyD2D to":    s.CopyD2D(v, own),
			"CopyD2D from":  s.CopyD2D(own, v),
			"Memset":        s.Memset(v, 2),
			"Uses":          s.Uses(v, device.InOut),
			"Launch, In":    launch(device.View.In, v),
			"Launch, Out":   launch(device.View.Out, v),
			"Launch, InOut": launch(device.View.InOut, v),
			"Launch, last":  launch(device.View.In, own, v),
			"Launch, first": launch(device.View.In, v, own),
			"part of it":    s.Memset(v.Slice(8, 8), 2),
		} {
			require.ErrorIs(f, err, device.ErrInvalid, "%s of %s", name, from)
			require.ErrorContains(f, err, "belongs to", name)
			require.ErrorContains(f, err, other.dev.Name(), name)
			var e *device.Error
			require.ErrorAs(f, err, &e)
			require.Equal(f, f.dev.Name(), e.Device, name)
			require.False(f, e.Async, name)
		}
		require.ErrorIs(f, s.CopyPeer(v, v), device.ErrInvalid, "the stream is neither's")
	}
	f.do(s.CopyD2H(h, own))
	f.synchronize(s)
	require.Equal(f, all(1, 64), h)
}

// Whatever has a Close takes a second one, and is refused by all else.
func closedTwice(f *fixture) {
	s, err := f.dev.NewStream(device.StreamOptions{})
	require.NoError(f, err)
	e, err := f.dev.NewEvent(device.EventOptions{})
	require.NoError(f, err)
	j, err := f.dev.NewJunction()
	require.NoError(f, err)
	b, err := f.dev.Alloc(64)
	require.NoError(f, err)
	h, err := f.dev.AllocHost(64, device.HostOptions{})
	require.NoError(f, err)
	r, err := f.dev.RegisterHost(make([]byte, 4096), device.HostOptions{})
	require.NoError(f, err)
	live := f.stream("live")
	// Handles that the driver may give out again must not be freed by a second Close.
	for _, closing := range []func() error{s.Close, e.Close, j.Close, b.Close, h.Close, r.Close} {
		f.do(closing())
	}
	again, next, v := f.stream("again"), f.event("next"), f.buffer(64)
	for range 2 {
		for _, closing := range []func() error{s.Close, e.Close, j.Close, b.Close, h.Close, r.Close} {
			f.do(closing())
		}
	}
	for name, err := range map[string]error{
		"Record of a closed event":     live.Record(e),
		"Wait for a closed event":      live.Wait(e),
		"Memset of closed memory":      live.Memset(b.View(), 1),
		"Memset in a closed stream":    s.Memset(v, 1),
		"Record in a closed stream":    s.Record(next),
		"Fork over a closed junction":  j.Fork(live, again),
		"Synchronize a closed stream":  s.Synchronize(f.ctx),
		"Synchronize a closed event":   e.Synchronize(f.ctx),
		"a launch in a closed stream":  s.Launch(add(v, 1)),
		"a launch with closed memory":  live.Launch(add(b.View(), 1)),
		"a copy between closed memory": live.CopyD2D(b.View(), v),
	} {
		require.ErrorIs(f, err, device.ErrInvalid, name)
		require.ErrorContains(f, err, "closed before", name)
	}
	f.do(again.Memset(v, 1))
	f.do(again.Record(next))
	f.do(next.Synchronize(f.ctx))
}

func closed(f *fixture) {
	s, err := f.dev.NewStream(device.StreamOptions{})
	require.NoError(f, err)
	f.do(s.Close())
	f.do(f.dev.Close())

	d := f.dev.Driver()
	for name, call := range map[string]func() error{
		"NewStream":         func() error { _, err := f.dev.NewStream(device.StreamOptions{}); return err },
		"NewEvent":          func() error { _, err := f.dev.NewEvent(device.EventOptions{}); return err },
		"Alloc":             func() error { _, err := f.dev.Alloc(8); return err },
		"AllocHost":         func() error { _, err := f.dev.AllocHost(8, device.HostOptions{}); return err },
		"RegisterHost":      func() error { _, err := f.dev.RegisterHost(make([]byte, 8), device.HostOptions{}); return err },
		"Memory":            func() error { _, _, err := f.dev.Memory(); return err },
		"Synchronize":       func() error { return f.dev.Synchronize(f.ctx) },
		"SynchronizeStream": func() error { return s.Synchronize(f.ctx) },
		"StreamDone":        func() error { _, err := s.Done(); return err },
		"HostFunc":          func() error { return s.HostFunc(func() {}) },
		"FreeStream":        func() error { return d.FreeStream(s.Handle()) },
		"CopyH2D":           func() error { return d.CopyH2D(s.Handle(), 256, make([]byte, 8)) },
		"CheckKernels":      func() error { return f.dev.CheckKernels(increment) },
		"Launch": func() error {
			return s.Launch(&device.Launch{Kernel: increment, Grid: [3]uint32{1}, Block: [3]uint32{1}})
		},
	} {
		require.ErrorIs(f, call(), device.ErrClosed, name)
	}
}
