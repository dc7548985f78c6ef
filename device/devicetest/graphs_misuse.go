package devicetest

import (
	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
)

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
		"work on a stream that is not captured": {func() error { return other.Memset(v, 1) }, device.CaptureUnsupported},
		"a kernel on such a stream":             {func() error { return other.Launch(add(v, 1)) }, device.CaptureUnsupported},
		"a graph on such a stream":              {func() error { return x.Launch(other) }, device.CaptureUnsupported},
		"a record on such a stream":             {func() error { return other.Record(outside) }, device.CaptureUnsupported},
		"a wait on such a stream":               {func() error { return other.Wait(outside) }, device.CaptureUnsupported},
		"launching a graph":                     {func() error { return x.Launch(s) }, device.CaptureUnsupported},
	} {
		var refused error
		_, err := s.Capture(func() error {
			f.do(s.Record(inside))
			f.do(s.Memset(v, 1))
			refused = c.call()
			require.ErrorIs(f, s.Launch(add(v, 1)), device.CaptureInvalidated, name)
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

	// Who asks about it beside another capture does not spoil that.
	c, errs := f.stream("c"), make(chan error)
	f.exec(a, func() {
		f.do(a.Memset(v, 2))
		go func() {
			_, err := e.Done()
			errs <- err
			errs <- e.Synchronize(f.ctx)
			errs <- c.Wait(e)
		}()
		for range 3 {
			require.ErrorIs(f, <-errs, device.CapturedEvent)
		}
		f.do(a.Memset(v, 3))
	})
	f.usable(c)
	f.do(a.Record(e))
	f.do(b.Wait(e))
	f.do(e.Synchronize(f.ctx))
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
