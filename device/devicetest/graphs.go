package devicetest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

// graphs skips the test on a device that has none.
func (f *fixture) graphs() {
	f.Helper()
	g, err := f.stream("probe").Capture(func() error { return nil })
	if errors.Is(err, device.ErrUnsupported) {
		f.Skip("the device has no graphs: ", err)
	}
	f.do(err)
	f.do(g.Close())
}

// capture makes a graph, and exec one ready to be launched; both are freed after the test.
func (f *fixture) capture(s *device.Stream, body func()) *device.Graph {
	f.Helper()
	g, err := s.Capture(func() error { body(); return nil })
	require.NoError(f, err)
	f.closings = append([]func() error{g.Close}, f.closings...) // before the memory
	return g
}

func (f *fixture) instantiate(g *device.Graph) *device.Exec {
	f.Helper()
	x, err := g.Instantiate()
	require.NoError(f, err)
	f.closings = append([]func() error{x.Close}, f.closings...)
	return x
}

func (f *fixture) exec(s *device.Stream, body func()) *device.Exec {
	f.Helper()
	return f.instantiate(f.capture(s, body))
}

// read is v's bytes once all work of s is done.
func (f *fixture) read(s *device.Stream, v device.View) []byte {
	f.Helper()
	h := f.host(v.Size())
	f.do(s.CopyD2H(h, v))
	f.synchronize(s)
	return h
}

func graphReplays(f *fixture) {
	f.graphs()
	s, v, up, down := f.stream("s"), f.buffer(64), f.host(64), f.host(64)
	copy(up, all(1, 64))
	x := f.exec(s, func() {
		f.do(s.CopyH2D(v, up))
		f.do(s.Launch(add(v, 2)))
		f.do(s.CopyD2D(v.Slice(0, 16), v.Slice(48, 16)))
		f.do(s.Memset(v.Slice(16, 16), 9))
		f.do(s.CopyD2H(down, v))
	})
	copy(down, all(0, 64))
	f.synchronize(s)
	require.Equal(f, all(0, 64), down, "nothing runs while it is captured")
	want := func(value byte) []byte {
		return append(append(all(value, 16), all(9, 16)...), all(value, 32)...)
	}
	for lap := range byte(3) {
		copy(up, all(10*lap, 64)) // the graph keeps the address, not the bytes
		f.do(x.Launch(s))
		f.synchronize(s)
		require.Equal(f, want(10*lap+2), down, "lap %d", lap)
	}
}

func graphOrder(f *fixture) {
	f.graphs()
	s, other, v := f.stream("s"), f.stream("other"), f.buffer(64)
	x := f.exec(s, func() { f.do(s.Launch(add(v, 1))) })
	release := f.hold(other)
	f.do(other.Memset(v, 10))
	f.do(x.Launch(other)) // in another stream than it was captured on
	f.do(other.Launch(add(v, 100)))
	f.do(x.Launch(other))
	f.settle()
	release()
	require.Equal(f, all(112, 64), f.read(other, v))
}

// Two launches of one graph, in streams that nothing orders, add without losing one.
func graphSerial(f *fixture) {
	f.graphs()
	const laps = 20
	a, b, v := f.stream("a"), f.stream("b"), f.buffer(4096)
	f.do(a.Memset(v, 0))
	f.synchronize(a)
	x := f.exec(a, func() {
		for range 3 {
			f.do(a.Launch(add(v, 1)))
		}
	})
	for range laps {
		f.do(x.Launch(a))
		f.do(x.Launch(b))
	}
	f.synchronize(a)
	require.Equal(f, all(2*laps*3, 4096), f.read(b, v))
}

func graphForks(f *fixture) {
	f.graphs()
	a, b := f.stream("a"), f.stream("b")
	fork, join := f.event("fork"), f.event("join")
	v, w := f.buffer(64), f.buffer(64)
	for _, s := range []*device.Stream{a, b} {
		f.do(s.Memset(v, 0))
		f.synchronize(s)
	}
	release := f.hold(b) // work pending on a stream that joins is no part of the graph
	x := f.exec(a, func() {
		f.do(a.Launch(add(v, 1)))
		f.do(a.Record(fork))
		f.do(b.Wait(fork))
		captured, err := b.Capturing()
		f.do(err)
		require.True(f, captured)
		f.do(b.CopyD2D(w, v))
		f.do(b.Launch(add(w, 10)))
		f.do(b.Record(join))
		f.do(a.Launch(add(v.Slice(0, 0), 5))) // beside b
		f.do(a.Wait(join))
		f.do(a.CopyD2D(v, w))
	})
	captured, err := b.Capturing()
	f.do(err)
	require.False(f, captured)
	for range 3 {
		f.do(x.Launch(a))
	}
	require.Equal(f, all(33, 64), f.read(a, v), "while b is held: a launch needs only its own stream")
	release()
	f.do(b.Memset(w, 1))
	require.Equal(f, all(1, 64), f.read(b, w), "b is a stream as before")
}

func graphBakedIn(f *fixture) {
	f.graphs()
	s, v := f.stream("s"), f.buffer(64)
	f.do(s.Memset(v, 0))
	l := add(v, 3)
	calls := 0
	x := f.exec(s, func() {
		calls++
		f.do(s.Launch(l))
	})
	*l = *add(v.Slice(0, 32), 50)
	f.do(x.Launch(s))
	f.do(x.Launch(s))
	require.Equal(f, all(6, 64), f.read(s, v), "a launch's arguments are those of the capture")
	require.Equal(f, 1, calls, "a replay runs no Go code of the body")
}

func graphHostFunc(f *fixture) {
	f.graphs()
	s, v, h := f.stream("s"), f.buffer(1), f.host(1)
	f.do(s.Memset(v, 0))
	var seen []byte
	x := f.exec(s, func() {
		f.do(s.Launch(add(v, 1)))
		f.do(s.CopyD2H(h, v))
		f.do(s.HostFunc(func() { seen = append(seen, h[0]) }))
	})
	f.synchronize(s)
	require.Empty(f, seen)
	for range 4 {
		f.do(x.Launch(s))
	}
	f.synchronize(s)
	require.Equal(f, []byte{1, 2, 3, 4}, seen)
}

func graphEmpty(f *fixture) {
	f.graphs()
	s, v := f.stream("s"), f.buffer(8)
	g := f.capture(s, func() {})
	require.Empty(f, g.Nodes())
	require.Empty(f, g.Diff(g))
	x := f.instantiate(g)
	f.do(s.Memset(v, 1))
	f.do(x.Launch(s))
	f.do(s.Launch(add(v, 1)))
	require.Equal(f, all(2, 8), f.read(s, v))
}

func graphSteadyState(f *fixture) {
	f.graphs()
	a, b, done := f.stream("a"), f.stream("b"), f.event("done")
	fork, join := f.event("fork"), f.event("join")
	v, h := f.buffer(4096), f.host(4096)
	x := f.exec(a, func() {
		f.do(a.CopyH2D(v, h))
		f.do(a.Record(fork))
		f.do(b.Wait(fork))
		f.do(b.Launch(add(v.Slice(0, 64), 1)))
		f.do(a.Launch(add(v.Slice(64, 64), 1)))
		f.do(b.Record(join))
		f.do(a.Wait(join))
		f.do(a.CopyD2H(h, v))
	})
	step := func() {
		f.do(x.Launch(a))
		f.do(a.Record(done))
		f.do(done.Synchronize(f.ctx))
	}
	for range 100 {
		step()
	}
	before := f.dev.Usage().Allocations
	allocs := testing.AllocsPerRun(200, step)
	require.Equal(f, before, f.dev.Usage().Allocations, "allocations of the driver")
	if raceEnabled {
		return // the detector allocates
	}
	require.Zero(f, allocs, "Go allocations a launch")
}

// Many launch one graph, each in a stream of its own, while it is updated to the like of
// itself and others are captured: every launch counts once.
func graphGoroutines(f *fixture) {
	f.graphs()
	const n, laps = 16, 20
	s, v := f.stream("s"), f.buffer(8)
	f.do(s.Memset(v, 0))
	f.synchronize(s)
	streams := make([]*device.Stream, n)
	for i := range streams {
		streams[i] = f.stream("s")
	}
	g := f.capture(s, func() { f.do(s.Launch(add(v, 1))) })
	x := f.instantiate(g)
	f.together(n, func(i int) error {
		for lap := range laps {
			if err := x.Launch(streams[i]); err != nil {
				return err
			}
			if lap%5 != i%5 {
				continue
			}
			own, err := streams[i].Capture(func() error { return streams[i].Launch(add(v, 1)) })
			if err == nil {
				err = errors.Join(x.Update(own), x.Update(g), own.Close())
			}
			if err != nil {
				return err
			}
		}
		return streams[i].Synchronize(f.ctx)
	})
	require.Equal(f, all(n*laps%256, 8), f.read(s, v))
}
