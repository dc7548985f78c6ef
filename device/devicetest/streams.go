package devicetest

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// Each byte of the buffer is written several times in one stream; what is read
// between the writes tells whether any overtook another.
func streamOrder(f *fixture) {
	const n, laps = 4096, 50
	s, v := f.stream("s"), f.buffer(n)
	in, out := f.host(n*laps), f.host(n*laps)
	for i := range laps {
		copy(in[i*n:], all(byte(i), n))
	}
	for i := range laps {
		if i%3 == 0 {
			f.do(s.Memset(v, byte(i)))
		} else {
			f.do(s.CopyH2D(v, in[i*n:(i+1)*n]))
		}
		f.do(s.CopyD2H(out[i*n:(i+1)*n], v))
	}
	f.synchronize(s)
	require.Equal(f, in, out)
	ok, err := s.Done()
	require.NoError(f, err)
	require.True(f, ok)
}

func streamAsynchronous(f *fixture) {
	s, e, v, h := f.stream("s"), f.event("e"), f.buffer(64), f.host(64)
	release := f.hold(s)
	copy(h, all(1, 64))
	f.do(s.CopyH2D(v, h))
	f.do(s.Memset(v.Slice(0, 32), 2))
	f.do(s.CopyD2H(h, v))
	f.do(s.Record(e))
	f.settle()
	require.Equal(f, all(1, 64), h, "nothing ran while the stream was held")
	require.False(f, f.done(e))
	ok, err := s.Done()
	require.NoError(f, err)
	require.False(f, ok)
	release()
	f.do(e.Synchronize(f.ctx))
	require.True(f, f.done(e))
	require.Equal(f, append(all(2, 32), all(1, 32)...), h)
}

func streamIndependence(f *fixture) {
	held, free := f.stream("held"), f.stream("free")
	v, h := f.buffer(64), f.host(64)
	f.hold(held)
	f.do(held.Memset(f.buffer(64), 1))
	f.do(free.Memset(v, 2))
	f.do(free.CopyD2H(h, v))
	f.synchronize(free)
	require.Equal(f, all(2, 64), h)
}

func streamPriorities(f *fixture) {
	p := f.dev.Properties()
	require.LessOrEqual(f, p.HighestPriority, p.LowestPriority)
	for _, priority := range []int{-1000, p.HighestPriority, 0, p.LowestPriority, 1000} {
		s, err := f.dev.NewStream(device.StreamOptions{Priority: priority})
		require.NoError(f, err, "priority %d", priority)
		f.synchronize(s)
		require.NoError(f, s.Close())
	}
}

func streamSynchronizeContext(f *fixture) {
	s := f.stream("s")
	f.do(s.Synchronize(canceled()))
	release := f.hold(s)
	require.ErrorIs(f, s.Synchronize(canceled()), context.Canceled)
	require.ErrorIs(f, f.dev.Synchronize(canceled()), context.Canceled)

	ctx, cancel := context.WithCancelCause(f.ctx)
	result := make(chan error)
	go func() { result <- s.Synchronize(ctx) }()
	left := errors.New("left")
	cancel(left)
	require.ErrorIs(f, <-result, left)
	require.ErrorIs(f, s.Synchronize(ctx), left)

	go func() { result <- s.Synchronize(f.ctx) }()
	release()
	require.NoError(f, <-result)
}

func streamFreed(f *fixture) {
	s, err := f.dev.NewStream(device.StreamOptions{Name: "freed"})
	require.NoError(f, err)
	v, h, e := f.buffer(64), f.host(64), f.event("e")
	copy(h, all(0, 64))
	release := f.hold(s)
	f.do(s.Memset(v, 3))
	f.do(s.CopyD2H(h, v))
	f.do(s.Record(e))
	f.do(s.Close())
	require.False(f, f.done(e))
	release()
	f.do(e.Synchronize(f.ctx))
	require.Equal(f, all(3, 64), h)
}

func deviceSynchronize(f *fixture) {
	f.do(f.dev.Synchronize(f.ctx))
	const streams = 5
	v, h := f.buffer(streams), f.host(streams)
	var releases []func()
	for i := range int64(streams) {
		s := f.stream("s")
		releases = append(releases, f.hold(s))
		f.do(s.Memset(v.Slice(i, 1), byte(i+1)))
		f.do(s.CopyD2H(h[i:i+1], v.Slice(i, 1)))
	}
	require.ErrorIs(f, f.dev.Synchronize(canceled()), context.Canceled)
	rand.Shuffle(streams, func(i, j int) { releases[i], releases[j] = releases[j], releases[i] })
	for _, release := range releases {
		release()
	}
	f.do(f.dev.Synchronize(f.ctx))
	require.Equal(f, []byte{1, 2, 3, 4, 5}, h)
}

func hostFuncOrder(f *fixture) {
	s, v, h := f.stream("s"), f.buffer(1), f.host(1)
	var seen []byte
	var want []byte
	for i := range byte(20) {
		f.do(s.Memset(v, i))
		f.do(s.CopyD2H(h, v))
		f.do(s.HostFunc(func() { seen = append(seen, h[0]) }))
		want = append(want, i)
	}
	f.synchronize(s)
	require.Equal(f, want, seen)
}
