package devicetest

import (
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/driver"
)

// Random bytes go in, across the device and out again in pieces of any size and
// offset; a copy of the device's memory on the host says what must come out.
func copyRandom(f *fixture) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const n = 1 << 18
	s, a, b := f.stream("s"), f.buffer(n), f.buffer(n)
	in, out := f.host(n), f.host(n)
	for i := range in {
		in[i] = byte(rnd.Uint32())
	}
	mirrorA, mirrorB := make([]byte, n), make([]byte, n)
	f.do(s.Memset(a, 0))
	f.do(s.Memset(b, 0))
	piece := func() (at, from, size int64) {
		size = 1 + rnd.Int64N(1<<(1+rnd.IntN(17)))
		return rnd.Int64N(n - size + 1), rnd.Int64N(n - size + 1), size
	}
	for range 100 {
		at, from, size := piece()
		f.do(s.CopyH2D(a.Slice(at, size), in[from:from+size]))
		copy(mirrorA[at:at+size], in[from:])
		at, from, size = piece()
		f.do(s.CopyD2D(b.Slice(at, size), a.Slice(from, size)))
		copy(mirrorB[at:at+size], mirrorA[from:])
	}
	f.do(s.CopyD2H(out, a))
	f.synchronize(s)
	require.True(f, string(mirrorA) == string(out), "host to device")
	copy(out, all(0, n))
	for range 100 {
		at, from, size := piece()
		f.do(s.CopyD2H(out[at:at+size], b.Slice(from, size)))
		f.synchronize(s)
		require.True(f, string(mirrorB[from:from+size]) == string(out[at:at+size]), "device to host, %d bytes at %d", size, from)
	}
	f.do(s.CopyD2H(out, b))
	f.synchronize(s)
	require.True(f, string(mirrorB) == string(out), "device to device")
}

func copyPageable(f *fixture) {
	s, v := f.stream("s"), f.buffer(1000)
	in, out := all(7, 1000), make([]byte, 1000)
	f.do(s.CopyH2D(v, in))
	f.do(s.CopyD2H(out, v))
	f.synchronize(s)
	require.Equal(f, in, out)
}

func copyRegistered(f *fixture) {
	s, v := f.stream("s"), f.buffer(1<<16)
	mem := make([]byte, 1<<16)
	h, err := f.dev.RegisterHost(mem, device.HostOptions{})
	require.NoError(f, err)
	_, err = f.dev.RegisterHost(mem[100:200], device.HostOptions{})
	require.Error(f, err, "registered already")
	copy(mem, all(9, 1<<16))
	f.do(s.CopyH2D(v, mem))
	out := f.host(1 << 16)
	f.do(s.CopyD2H(out, v))
	f.synchronize(s)
	require.Equal(f, mem, out)
	f.do(h.Close())
}

func copyNothing(f *fixture) {
	s, e, v := f.stream("s"), f.event("e"), f.buffer(0)
	f.do(s.CopyH2D(v, nil))
	f.do(s.CopyD2H(nil, v))
	f.do(s.CopyD2D(v, v))
	f.do(s.Memset(v, 1))
	f.do(s.Record(e))
	f.do(e.Synchronize(f.ctx))
}

func memsetRange(f *fixture) {
	const n = 10_000
	s, v, h := f.stream("s"), f.buffer(n), f.host(n)
	mirror := all(0xaa, n)
	f.do(s.Memset(v, 0xaa))
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 50 {
		size := 1 + rnd.Int64N(n/4)
		at := rnd.Int64N(n - size + 1)
		f.do(s.Memset(v.Slice(at, size), byte(i)))
		copy(mirror[at:], all(byte(i), int(size)))
	}
	f.do(s.CopyD2H(h, v))
	f.synchronize(s)
	require.Equal(f, mirror, h)
}

func copyUnequal(f *fixture) {
	s, v := f.stream("s"), f.buffer(64)
	require.ErrorIs(f, s.CopyH2D(v, make([]byte, 65)), device.ErrInvalid)
	require.ErrorIs(f, s.CopyH2D(v, make([]byte, 63)), device.ErrInvalid)
	require.ErrorIs(f, s.CopyD2H(make([]byte, 65), v), device.ErrInvalid)
	require.ErrorIs(f, s.CopyD2D(v, v.Slice(0, 32)), device.ErrInvalid)
}

// The facade's views can't leave their buffer, so the ranges are made by hand.
func copyOutOfRange(f *fixture) {
	if f.opts.UncheckedRanges {
		f.Skip("this driver doesn't check ranges")
	}
	s, v, w := f.stream("s"), f.buffer(256), f.buffer(256)
	freed, err := f.dev.Alloc(256)
	require.NoError(f, err)
	gone := freed.View().Address()
	f.do(freed.Close())

	d, h := f.dev.Driver(), s.Handle()
	mem := make([]byte, 256)
	for name, p := range map[string]driver.Address{
		"past the end": v.Address() + 1, "before the start": v.Address() - 1,
		"another allocation's end": w.Address() + 200, "freed": gone, "null": 0,
		"the host's": ^driver.Address(0) - 300,
	} {
		require.ErrorIs(f, d.CopyH2D(h, p, mem), device.ErrInvalid, name)
		require.ErrorIs(f, d.CopyD2H(h, mem, p), device.ErrInvalid, name)
		require.ErrorIs(f, d.CopyD2D(h, v.Address(), p, 256), device.ErrInvalid, name)
		require.ErrorIs(f, d.CopyD2D(h, p, v.Address(), 256), device.ErrInvalid, name)
		require.ErrorIs(f, d.Memset(h, p, 0, 256), device.ErrInvalid, name)
	}
	require.ErrorIs(f, d.Memset(h, v.Address(), 0, -1), device.ErrInvalid)
	f.do(d.Memset(h, v.Address(), 1, 256))
	f.synchronize(s)
}
