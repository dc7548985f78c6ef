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
		"Launch":            func() error { return s.Launch(&device.Launch{Kernel: increment}) },
	} {
		require.ErrorIs(f, call(), device.ErrClosed, name)
	}
}
