package devicetest

import (
	"errors"
	"runtime"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

func isUnsupported(err error) bool { return errors.Is(err, device.ErrUnsupported) }

func graphNodes(f *fixture) {
	f.graphs()
	a, b := f.stream("a"), f.stream("b")
	fork, join := f.event("fork"), f.event("join")
	v, h := f.buffer(256), f.host(256)
	step := func(by uint32, at int64, value byte) func() {
		return func() {
			f.do(a.CopyH2D(v, h))
			f.do(a.Record(fork))
			f.do(b.Wait(fork))
			f.do(a.Launch(add(v.Slice(at, 64), by)))
			f.do(b.Memset(v.Slice(192, 64), value))
			f.do(b.Record(join))
			f.do(a.Wait(join))
			f.do(a.HostFunc(func() {}))
		}
	}
	g := f.capture(a, step(7, 0, 1))
	nodes := g.Nodes()
	require.Len(f, nodes, 4)
	var kinds []device.NodeKind
	for _, n := range nodes {
		kinds = append(kinds, n.Kind)
		require.Empty(f, n.Opaque)
	}
	require.Equal(f, []device.NodeKind{device.CopyNode, device.KernelNode, device.MemsetNode, device.HostNode}, kinds)
	up, kernel, memset := nodes[0], nodes[1], nodes[2]
	require.Equal(f, "CopyH2D", up.Op)
	require.Equal(f, v.Address(), up.Dst)
	require.Equal(f, int64(256), up.Bytes)
	require.Equal(f, increment.Name, kernel.Kernel)
	require.Equal(f, [3]uint32{1, 1, 1}, kernel.Grid)
	require.Equal(f, [3]uint32{128, 1, 1}, kernel.Block)
	require.Len(f, kernel.Args, 3)
	require.Equal(f, []byte{7, 0, 0, 0}, kernel.Args[2])
	require.Equal(f, v.Address()+192, memset.Dst)
	require.Equal(f, byte(1), memset.Value)
	require.Empty(f, up.After)
	require.Equal(f, []int{0}, kernel.After)
	require.Equal(f, []int{0}, memset.After)
	require.Equal(f, []int{1, 2}, nodes[3].After)

	require.Empty(f, g.Diff(f.capture(a, step(7, 0, 1))), "the same step")
	for name, c := range map[string]struct {
		other *device.Graph
		want  []string
	}{
		"scalar":  {f.capture(a, step(8, 0, 1)), []string{`kernel "leat_devicetest_increment": argument 2: 0x7 (int32 7`, "0x8"}},
		"address": {f.capture(a, step(7, 64, 1)), []string{`kernel "leat_devicetest_increment": argument 0`}},
		"memset":  {f.capture(a, step(7, 0, 2)), []string{"node 2, Memset: the value: 1, then 2"}},
	} {
		diff := g.Diff(c.other)
		require.Len(f, diff, 1, name)
		require.False(f, diff[0].Shape, name)
		for _, text := range c.want {
			require.ErrorContains(f, diff[0], text, name)
		}
	}
	scalar := g.Diff(f.capture(a, step(8, 0, 1)))[0]
	require.Equal(f, 2, scalar.Argument)
	require.Equal(f, 1, scalar.Node)
}

func graphUpdate(f *fixture) {
	f.graphs()
	s, v, w := f.stream("s"), f.buffer(64), f.buffer(64)
	f.do(s.Memset(v, 0))
	f.do(s.Memset(w, 0))
	x := f.exec(s, func() { f.do(s.Launch(add(v, 1))) })
	f.do(x.Launch(s))
	g, err := s.Capture(func() error { return s.Launch(add(w, 20)) })
	f.do(err)
	release := f.hold(s)
	f.do(x.Launch(s))
	f.do(x.Update(g)) // what was launched before keeps its parameters
	f.do(g.Close())
	f.do(x.Launch(s))
	release()
	require.Equal(f, all(2, 64), f.read(s, v))
	require.Equal(f, all(20, 64), f.read(s, w))
	require.Equal(f, []byte{20, 0, 0, 0}, x.Nodes()[0].Args[2])
}

func graphUpdateShape(f *fixture) {
	f.graphs()
	s, other, v := f.stream("s"), f.stream("other"), f.buffer(64)
	fork, join := f.event("fork"), f.event("join")
	f.do(s.Memset(v, 0))
	f.synchronize(s)
	two := func() {
		f.do(s.Launch(add(v, 1)))
		f.do(s.Launch(add(v, 2)))
	}
	x := f.exec(s, two)
	for name, c := range map[string]struct {
		body func()
		want string
	}{
		"more nodes": {func() { two(); two() }, "the number of nodes: 2, then 4"},
		"other work": {func() { f.do(s.Launch(add(v, 1))); f.do(s.Memset(v, 1)) }, `node 1, kernel "leat_devicetest_increment": the work`},
		"other order": {func() {
			f.do(s.Record(fork))
			f.do(other.Wait(fork))
			f.do(s.Launch(add(v.Slice(0, 1), 1)))
			f.do(other.Launch(add(v.Slice(1, 1), 2)))
			f.do(other.Record(join))
			f.do(s.Wait(join))
		}, `the nodes that it waits for: [0], then []`},
	} {
		err := x.Update(f.capture(s, c.body))
		require.ErrorIs(f, err, device.ErrInvalid, name)
		require.ErrorContains(f, err, c.want, name)
		diff := new(device.Difference)
		require.ErrorAs(f, err, &diff, name)
		require.True(f, diff.Shape, name)
	}
	f.do(x.Launch(s))
	require.Equal(f, all(3, 64), f.read(s, v), "the exec is as it was")
}

func graphHolds(f *fixture) {
	f.graphs()
	s := f.stream("s")
	b, err := f.dev.Alloc(64)
	f.do(err)
	h, err := f.dev.AllocHost(64, device.HostOptions{})
	f.do(err)
	g, err := s.Capture(func() error {
		return errors.Join(s.CopyH2D(b.View(), h.Bytes()), s.Launch(add(b.View(), 1)))
	})
	f.do(err)
	refused := func(when string) {
		f.Helper()
		for _, close := range []func() error{b.Close, h.Close} {
			err := close()
			require.ErrorIs(f, err, device.ErrInvalid, when)
			require.ErrorContains(f, err, "graph", when)
		}
	}
	refused("by the graph")
	x, err := g.Instantiate()
	f.do(err)
	f.do(g.Close())
	refused("by its exec")
	f.do(x.Launch(s))
	f.synchronize(s)
	require.Equal(f, int64(1), f.dev.Usage().Execs)
	f.do(x.Close())
	f.do(x.Close())
	f.do(b.Close())
	f.do(h.Close())
}

// usable requires that a stream, and captures on it, do what they should.
func (f *fixture) usable(s *device.Stream) {
	f.Helper()
	v := f.buffer(8)
	captured, err := s.Capturing()
	require.NoError(f, err)
	require.False(f, captured)
	f.do(s.Memset(v, 1))
	f.do(f.exec(s, func() { f.do(s.Launch(add(v, 1))) }).Launch(s))
	require.Equal(f, all(2, 8), f.read(s, v))
}

func graphRefusals(f *fixture) {
	f.graphs()
	s, other := f.stream("s"), f.stream("other")
	outside, inside := f.event("outside"), f.event("inside")
	timed := []*device.Event{f.eventWith(device.EventOptions{Timing: true}), f.eventWith(device.EventOptions{Timing: true})}
	v := f.buffer(64)
	pageable, err := f.dev.AllocHost(64, device.HostOptions{Pageable: true})
	f.do(err)
	f.closings = append(f.closings, pageable.Close)
	spare, err := f.dev.Alloc(64)
	f.do(err)
	f.closings = append(f.closings, spare.Close)
	g := f.capture(other, func() { f.do(other.Memset(v, 1)) })
	x := f.instantiate(g)
	for _, e := range append(timed, outside) {
		f.do(other.Record(e))
	}
	f.synchronize(other)
	second := func(_ bool, err error) error { return err }
	for name, c := range map[string]struct {
		call func() error
		want device.CaptureError
	}{
		"a wait for an event outside":           {func() error { return s.Wait(outside) }, device.CaptureIsolation},
		"asking about a captured event":         {func() error { return second(inside.Done()) }, device.CapturedEvent},
		"synchronising a captured event":        {func() error { return inside.Synchronize(f.ctx) }, device.CapturedEvent},
		"asking about the stream":               {func() error { return second(s.Done()) }, device.CaptureUnsupported},
		"synchronising the stream":              {func() error { return s.Synchronize(f.ctx) }, device.CaptureUnsupported},
		"synchronising the device":              {func() error { return f.dev.Synchronize(f.ctx) }, device.CaptureUnsupported},
		"synchronising another stream":          {func() error { return other.Synchronize(f.ctx) }, device.CaptureUnsupported},
		"asking about an event outside":         {func() error { return second(outside.Done()) }, device.CaptureUnsupported},
		"the time between events":               {func() error { _, err := device.Elapsed(timed[0], timed[1]); return err }, device.CaptureUnsupported},
		"a copy from memory that is not pinned": {func() error { return s.CopyH2D(v, pageable.Bytes()) }, device.CaptureUnsupported},
		"a copy to memory that is not pinned":   {func() error { return s.CopyD2H(pageable.Bytes(), v) }, device.CaptureUnsupported},
		"a copy from a slice of Go's":           {func() error { return s.CopyH2D(v, make([]byte, 64)) }, device.CaptureUnsupported},
		"Alloc":                                 {func() error { _, err := f.dev.Alloc(8); return err }, device.CaptureUnsupported},
		"AllocHost":                             {func() error { _, err := f.dev.AllocHost(8, device.HostOptions{}); return err }, device.CaptureUnsupported},
		"Close of memory":                       {spare.Close, device.CaptureUnsupported},
		"Close of the stream":                   {s.Close, device.CaptureUnsupported},
		"Instantiate":                           {func() error { _, err := g.Instantiate(); return err }, device.CaptureUnsupported},
		"an update":                             {func() error { return x.Update(g) }, device.CaptureUnsupported},
		"Close of an exec":                      {x.Close, device.CaptureUnsupported},
		"launching a graph":                     {func() error { return x.Launch(s) }, device.CaptureUnsupported},
	} {
		var refused error
		_, err := s.Capture(func() error {
			f.do(s.Record(inside))
			f.do(s.Memset(v, 1))
			refused = c.call()
			if err := s.Launch(add(v, 1)); err == nil {
				f.Errorf("%s: the capture goes on", name)
			} else {
				require.ErrorIs(f, err, device.ErrCapture, name)
			}
			return nil // whatever a body makes of it
		})
		require.ErrorIs(f, refused, c.want, name)
		require.ErrorIs(f, refused, device.ErrCapture, name)
		require.ErrorIs(f, err, device.CaptureInvalidated, name)
		f.usable(s)
		f.usable(other)
	}

	_, err = s.Capture(func() error {
		_, err := s.Capture(func() error { return nil })
		require.ErrorIs(f, err, device.CaptureActive)
		return err
	})
	require.ErrorIs(f, err, device.CaptureActive)
	f.usable(s)
}

func graphUnjoined(f *fixture) {
	f.graphs()
	a, b, c := f.stream("a"), f.stream("b"), f.stream("c")
	fork, join := f.event("fork"), f.event("join")
	v := f.buffer(64)
	begin := func() {
		f.do(a.Record(fork))
		f.do(b.Wait(fork))
		f.do(b.Memset(v, 1))
	}
	for name, body := range map[string]func(){
		"no join": begin,
		"work behind the join": func() {
			begin()
			f.do(b.Record(join))
			f.do(a.Wait(join))
			f.do(b.Launch(add(v, 1)))
		},
		"joined into another fork": func() {
			begin()
			f.do(c.Wait(fork))
			f.do(b.Record(join))
			f.do(c.Wait(join))
			f.do(c.Launch(add(v, 1)))
		},
	} {
		_, err := a.Capture(func() error { body(); return nil })
		require.ErrorIs(f, err, device.CaptureUnjoined, name)
		for _, s := range []*device.Stream{a, b, c} {
			f.usable(s)
		}
	}

	// Two forks that wait for each other, of which one comes back.
	g, err := a.Capture(func() error {
		begin()
		f.do(c.Wait(fork))
		f.do(c.Record(join))
		f.do(b.Wait(join)) // nothing to wait for but the fork
		f.do(b.Record(join))
		f.do(c.Wait(join))
		f.do(c.Launch(add(v, 1)))
		f.do(c.Record(join))
		return a.Wait(join)
	})
	f.do(err)
	require.Len(f, g.Nodes(), 2)
	f.do(g.Close())
}

func graphMerge(f *fixture) {
	f.graphs()
	a, b, v := f.stream("a"), f.stream("b"), f.buffer(64)
	e := f.event("e")
	_, err := a.Capture(func() error {
		f.do(a.Memset(v, 1))
		f.do(a.Record(e))
		_, err := b.Capture(func() error { return b.Wait(e) })
		require.ErrorIs(f, err, device.CaptureMerge)
		return nil
	})
	require.ErrorIs(f, err, device.CaptureInvalidated)
	f.usable(a)
	f.usable(b)

	var inner *device.Graph
	x := f.exec(a, func() {
		f.do(a.Memset(v, 1))
		inner = f.capture(b, func() { f.do(b.Launch(add(v, 1))) })
		f.do(a.Launch(add(v, 10)))
	})
	f.do(x.Launch(a))
	f.do(f.instantiate(inner).Launch(a))
	require.Equal(f, all(12, 64), f.read(a, v))
}

func graphCapturedEvent(f *fixture) {
	f.graphs()
	a, b, e, v := f.stream("a"), f.stream("b"), f.event("e"), f.buffer(64)
	f.exec(a, func() {
		f.do(a.Memset(v, 1))
		f.do(a.Record(e))
	})
	require.ErrorIs(f, b.Wait(e), device.CapturedEvent)
	_, err := e.Done()
	require.ErrorIs(f, err, device.CapturedEvent)
	require.ErrorIs(f, e.Synchronize(f.ctx), device.CapturedEvent)
	f.do(a.Record(e))
	f.do(b.Wait(e))
	f.do(e.Synchronize(f.ctx))
}

func graphBodyFails(f *fixture) {
	f.graphs()
	s, v := f.stream("s"), f.buffer(64)
	before := f.dev.Usage()
	own := errors.New("own")
	_, err := s.Capture(func() error {
		f.do(s.Memset(v, 1))
		return own
	})
	require.Equal(f, own, err)
	f.usable(s)
	require.PanicsWithValue(f, "own", func() {
		_, _ = s.Capture(func() error {
			f.do(s.Memset(v, 1))
			panic("own")
		})
	})
	f.usable(s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Capture(func() error { runtime.Goexit(); return nil })
	}()
	<-ended
	f.usable(s)
	_, err = s.Capture(nil)
	require.ErrorIs(f, err, device.ErrInvalid)
	require.Equal(f, before.Buffers+3, f.dev.Usage().Buffers, "those of usable")
	require.Equal(f, int64(3), f.dev.Usage().Graphs, "those of usable")
}

// What others do beside a capture is neither refused nor captured, and they may submit to
// the captured stream.
func graphBeside(f *fixture) {
	f.graphs()
	s, other, e := f.stream("s"), f.stream("other"), f.event("e")
	v, w, h := f.buffer(64), f.buffer(64), f.host(64)
	f.do(s.Memset(v, 0))
	f.synchronize(s)
	errs := make(chan error)
	beside := func() error {
		b, err := f.dev.Alloc(64)
		if err != nil {
			return err
		}
		p, err := f.dev.AllocHost(64, device.HostOptions{})
		if err != nil {
			return err
		}
		err = errors.Join(other.Memset(w, 5), other.CopyD2H(h, w), other.Record(e), e.Synchronize(f.ctx), other.Synchronize(f.ctx),
			s.Launch(add(v, 1)))
		_, asked := e.Done()
		return errors.Join(err, asked, b.Close(), p.Close())
	}
	x := f.exec(s, func() {
		go func() { errs <- beside() }()
		f.do(<-errs)
		f.do(s.Launch(add(v, 10)))
	})
	require.Equal(f, all(5, 64), h)
	f.do(x.Launch(s))
	require.Equal(f, all(11, 64), f.read(s, v))

	var capturing sync.WaitGroup
	for range 8 {
		s := f.stream("s")
		capturing.Go(func() {
			for range 20 {
				g, err := s.Capture(func() error { return s.Launch(add(v, 1)) })
				if err == nil {
					err = g.Close()
				}
				if err != nil {
					f.Error(err)
				}
			}
		})
	}
	capturing.Wait()
}

func graphForeign(f *fixture) {
	f.graphs()
	s, v := f.stream("s"), f.buffer(8)
	other := f.another()
	body := func() error { return s.Launch(add(v, 1)) }
	g, err := s.Capture(body)
	f.do(err)
	x, err := g.Instantiate()
	f.do(err)
	require.ErrorIs(f, x.Launch(other.stream("other")), device.ErrInvalid)
	require.ErrorIs(f, x.Launch(nil), device.ErrInvalid)
	require.ErrorIs(f, x.Update(nil), device.ErrInvalid)
	f.do(g.Close())
	f.do(g.Close())
	_, err = g.Instantiate()
	require.ErrorIs(f, err, device.ErrInvalid)
	require.ErrorIs(f, x.Update(g), device.ErrInvalid)
	f.do(s.Memset(v, 0))
	f.do(x.Launch(s))
	require.Equal(f, all(1, 8), f.read(s, v))
	f.do(x.Close())
	require.ErrorIs(f, x.Launch(s), device.ErrInvalid)

	closed, err := f.dev.NewStream(device.StreamOptions{})
	f.do(err)
	f.do(closed.Close())
	_, err = closed.Capture(body)
	require.ErrorIs(f, err, device.ErrInvalid)
}
