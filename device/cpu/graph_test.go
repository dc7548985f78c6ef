package cpu_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
)

// exec captures body on s; the graph and the exec are closed before the rig's memory.
func (r *rig) exec(s *device.Stream, body func()) *device.Exec {
	r.t.Helper()
	g, err := s.Capture(func() error { body(); return nil })
	require.NoError(r.t, err)
	x, err := g.Instantiate()
	require.NoError(r.t, err)
	r.do(g.Close())
	r.closings = append([]func() error{x.Close}, r.closings...)
	return x
}

// took is how long what submit submits to s takes.
func (r *rig) took(s *device.Stream, submit func()) time.Duration {
	r.t.Helper()
	begin := time.Now()
	submit()
	require.Equal(r.t, begin, time.Now(), "submitting must not wait")
	r.do(s.Synchronize(background))
	return time.Since(begin)
}

// 64 short kernels, launched one by one and replayed, take what the model says.
func TestAGraphCostsOneLaunch(t *testing.T) {
	const kernels, us = 64, time.Microsecond
	h200 := cpu.H200()
	for name, c := range map[string]struct {
		model              cpu.Model
		kernel             time.Duration
		launched, replayed time.Duration
	}{
		"one launch's latency": {cpu.Model{KernelLatency: 5 * us}, us, kernels * 6 * us, 5*us + kernels*us},
		"latencies of its own": {cpu.Model{KernelLatency: 5 * us, GraphLatency: 8 * us, NodeLatency: 2 * us}, us, kernels * 6 * us, 8*us + kernels*3*us},
		"no time at all":       {cpu.Model{}, 0, 0, 0},
		"no latency":           {cpu.Model{}, 3 * us, kernels * 3 * us, kernels * 3 * us},
		"an H200":              {h200, 0, kernels * h200.KernelLatency, h200.KernelLatency + kernels*h200.NodeLatency},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := open(t, cpu.Options{Model: &c.model})
				s := r.stream("s")
				body := func() {
					for range kernels {
						r.compute(s, c.kernel)
					}
				}
				x := r.exec(s, body)
				require.Equal(t, c.launched, r.took(s, body))
				for range 3 {
					require.Equal(t, c.replayed, r.took(s, func() { r.do(x.Launch(s)) }))
				}
				r.close()
			})
		})
	}
	ratio := float64(kernels*h200.KernelLatency) / float64(h200.KernelLatency+kernels*h200.NodeLatency)
	require.InEpsilon(t, 312.0/75, ratio, 0.01, "the preset is the measurement it was made from")
}

// The branches of a graph overlap as streams do, and the launch waits for all.
func TestAGraphsBranchesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := open(t, cpu.Options{Model: &cpu.Model{H2D: cpu.Link{Latency: 10 * ms}, D2H: cpu.Link{Latency: 4 * ms}, GraphLatency: ms}})
		a, b, fork, join := r.stream("a"), r.stream("b"), r.event("fork"), r.event("join")
		x := r.exec(a, func() {
			r.compute(a, 2*ms)
			r.do(a.Record(fork), b.Wait(fork))
			r.in(b) // from 3 to 13 ms
			r.do(b.Record(join))
			r.compute(a, 30*ms) // from 3 to 33 ms
			r.do(a.Wait(join))
			r.out(a)
		})
		require.Equal(t, 37*ms, r.took(a, func() { r.do(x.Launch(a)) }))
		other := r.stream("other")
		require.Equal(t, 74*ms, r.took(other, func() { r.do(x.Launch(a), x.Launch(other)) }), "one launch behind the other")
		r.close()
	})
}

// A node is an operation to an adversary: it is asked about each, poisons each and looks
// whether its inputs change.
func TestTheAdversarySeesNodes(t *testing.T) {
	bad := errors.New("bad")
	var armed bool
	var calls []cpu.Call
	a := &cpu.Adversary{Poison: true, CheckInputs: true, Fault: func(c cpu.Call) error {
		if calls = append(calls, c); armed && c.Op == "Memset" {
			return bad
		}
		return nil
	}}
	r := open(t, cpu.Options{Adversary: a})
	s := r.stream("s")
	x := r.exec(s, func() {
		r.in(s)
		r.do(s.Memset(r.buf, 3))
		r.compute(s, 0)
	})
	require.Empty(t, calls, "what is captured does not run")
	r.do(x.Launch(s), s.Synchronize(background))
	require.Len(t, calls, 3)
	require.Equal(t, "CopyH2D", calls[0].Op)
	require.Equal(t, "busy", calls[2].Kernel)
	armed = true
	r.do(x.Launch(s))
	err := s.Synchronize(background)
	require.ErrorIs(t, err, bad)
	require.ErrorIs(t, err, device.ErrFault)
	fault := new(cpu.Fault)
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "Memset", fault.Op)
	require.ErrorIs(t, x.Launch(s), device.ErrFault)
	_, err = s.Capture(func() error { return nil })
	require.ErrorIs(t, err, device.ErrFault)
	r.close() // all can be freed
}

// Two branches that share memory without an event between them: the adversary's race.
func TestARaceInAGraphIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &cpu.Adversary{CheckInputs: true}
		r := open(t, cpu.Options{Model: fixed(5*ms, 10*ms), Adversary: a})
		up, down, fork, join := r.stream("up"), r.stream("down"), r.event("fork"), r.event("join")
		copy(r.host, filled(7, len(r.host)))
		in := r.hostBuffer(int64(len(r.host)))
		x := r.exec(up, func() {
			r.do(up.Record(fork), down.Wait(fork))
			r.out(down)
			r.do(up.CopyH2D(r.buf, in))
			r.do(down.Record(join), up.Wait(join))
		})
		r.do(up.CopyH2D(r.buf, r.host))
		r.do(x.Launch(up))
		race := new(cpu.Race)
		require.ErrorAs(t, up.Synchronize(background), &race)
		r.close()
	})
}

// What was submitted behind a launch that faults, and the launch's own nodes, don't run.
func TestAFaultEndsALaunch(t *testing.T) {
	r := open(t, cpu.Options{})
	s := r.stream("s")
	ran := false
	x := r.exec(s, func() {
		r.do(s.HostFunc(func() { panic("own") }))
		r.do(s.HostFunc(func() { ran = true }))
	})
	r.do(x.Launch(s))
	err := s.Synchronize(background)
	panicked := new(cpu.Panic)
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, "own", panicked.Value)
	require.False(t, ran)
	r.close()
}

func TestWhatACaptureLeavesIsToldByClose(t *testing.T) {
	r := open(t, cpu.Options{})
	s := r.stream("s")
	g, err := s.Capture(func() error { return s.Memset(r.buf, 1) })
	require.NoError(t, err)
	_, err = g.Instantiate()
	require.NoError(t, err)
	leak := new(cpu.LeakError)
	require.ErrorAs(t, r.Close(), &leak)
	require.Equal(t, 1, leak.Graphs)
	require.Equal(t, 1, leak.Execs)
	require.ErrorContains(t, leak, "1 graph, 1 exec")
	require.ErrorIs(t, g.Close(), device.ErrClosed)
}

// drivers is a driver with a stream on which a capture began, and another stream.
func drivers(t *testing.T) (d *cpu.Device, s, other driver.Stream, e driver.Event) {
	d, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	for _, h := range []*driver.Stream{&s, &other} {
		*h, err = d.NewStream(driver.StreamConfig{})
		require.NoError(t, err)
	}
	e, err = d.NewEvent(driver.EventConfig{})
	require.NoError(t, err)
	require.NoError(t, d.BeginCapture(s))
	return d, s, other, e
}

func TestACaptureEndsWhereItBegan(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(d *cpu.Device, s, other driver.Stream, e driver.Event) error
		want error
		then error // of EndCapture as it should be
	}{
		"on a stream that is not captured": {func(d *cpu.Device, _, other driver.Stream, _ driver.Event) error {
			_, err := d.EndCapture(other)
			return err
		}, driver.CaptureUnmatched, nil},
		"on a stream forked off": {func(d *cpu.Device, s, other driver.Stream, e driver.Event) error {
			require.NoError(t, errors.Join(d.Record(e, s), d.Wait(other, e)))
			_, err := d.EndCapture(other)
			return err
		}, driver.CaptureUnmatched, driver.CaptureInvalidated},
		"on another goroutine": {func(d *cpu.Device, s, _ driver.Stream, _ driver.Event) error {
			result := make(chan error)
			go func() {
				_, err := d.EndCapture(s)
				result <- err
			}()
			return <-result
		}, driver.CaptureWrongThread, driver.CaptureInvalidated},
		"of no stream": {func(d *cpu.Device, _, _ driver.Stream, _ driver.Event) error {
			_, err := d.EndCapture(999)
			return err
		}, driver.ErrInvalid, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, s, other, e := drivers(t)
			require.ErrorIs(t, c.end(d, s, other, e), c.want)
			_, err := d.EndCapture(s)
			require.ErrorIs(t, err, c.then)
			for _, s := range []driver.Stream{s, other} {
				captured, err := d.Capturing(s)
				require.NoError(t, err)
				require.False(t, captured)
			}
			_, err = d.EndCapture(s)
			require.ErrorIs(t, err, driver.CaptureUnmatched)
		})
	}
}

// What a goroutine may not do in one of its captures, it may not in the others.
func TestARefusalSpoilsAllCapturesOfAGoroutine(t *testing.T) {
	r := open(t, cpu.Options{})
	a, b := r.stream("a"), r.stream("b")
	_, err := a.Capture(func() error {
		_, err := b.Capture(func() error {
			_, err := r.Alloc(8)
			require.ErrorIs(t, err, device.CaptureUnsupported)
			return nil
		})
		require.ErrorIs(t, err, device.CaptureInvalidated)
		return nil
	})
	require.ErrorIs(t, err, device.CaptureInvalidated)
	r.close()
}

// A capture keeps to one device, but for copies.
func TestCapturesOfTwoDevices(t *testing.T) {
	r, far := open(t, cpu.Options{}), open(t, cpu.Options{Index: 1})
	s, remote := r.stream("s"), far.stream("remote")
	e, farEvent := r.event("e"), far.event("far")
	far.do(remote.Record(farEvent))
	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"a wait of the other's":     {func() error { return remote.Wait(e) }, device.CaptureUnsupported},
		"a wait for the other's":    {func() error { return s.Wait(farEvent) }, device.CaptureIsolation},
		"the other is synchronised": {func() error { return far.Synchronize(background) }, nil},
	} {
		g, err := s.Capture(func() error {
			r.do(s.Record(e))
			require.ErrorIs(t, c.call(), c.want, name)
			return nil
		})
		if c.want != nil {
			require.ErrorIs(t, err, device.CaptureInvalidated, name)
			continue
		}
		r.do(err, g.Close())
	}
	copy(r.host, filled(4, len(r.host)))
	x := r.exec(s, func() {
		r.in(s)
		r.do(s.CopyPeer(far.buf, r.buf))
	})
	r.do(x.Launch(s), s.Synchronize(background))
	far.out(remote)
	far.do(remote.Synchronize(background))
	require.Equal(t, r.host, far.host)
	r.close()
	far.close()
}

// An exec outlives the streams and events of its capture.
func TestAGraphNeedsNoStreamOfItsCapture(t *testing.T) {
	r := open(t, cpu.Options{})
	s := r.stream("s")
	a, err := r.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	b, err := r.NewStream(device.StreamOptions{})
	require.NoError(t, err)
	e, err := r.NewEvent(device.EventOptions{})
	require.NoError(t, err)
	x := r.exec(a, func() {
		r.do(a.Memset(r.buf, 1), a.Record(e), b.Wait(e), b.Memset(r.buf, 2), b.Record(e), a.Wait(e))
		r.out(a)
	})
	r.do(a.Close(), b.Close(), e.Close())
	r.do(x.Launch(s), s.Synchronize(background))
	require.Equal(t, filled(2, len(r.host)), r.host)
	r.close()
}

func BenchmarkGraph(b *testing.B) {
	const kernels = 64
	dev, err := cpu.Open(cpu.Options{})
	require.NoError(b, err)
	s, err := dev.NewStream(device.StreamOptions{})
	require.NoError(b, err)
	kernel := cpu.Busy(0)
	body := func() error {
		for range kernels {
			if err := s.Launch(kernel); err != nil {
				return err
			}
		}
		return nil
	}
	g, err := s.Capture(body)
	require.NoError(b, err)
	x, err := g.Instantiate()
	require.NoError(b, err)
	for by, submit := range map[string]func() error{"launch": body, "replay": func() error { return x.Launch(s) }} {
		b.Run("by="+by, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := errors.Join(submit(), s.Synchronize(background)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
