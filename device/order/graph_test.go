package order_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/devicetest"
	"github.com/leat-go/leat/device/order"
)

// graphRig is a rig over a CPU device, which has graphs.
func graphRig(t *testing.T, o order.Options) *rig {
	drv, err := cpu.New(cpu.Options{})
	require.NoError(t, err)
	c := order.New(o)
	r := &rig{t: t, checker: c, dev: device.New(c.Wrap(drv))}
	t.Cleanup(func() { _ = r.dev.Close() })
	return r
}

func (r *rig) exec(s *device.Stream, body func() error) *device.Exec {
	r.t.Helper()
	g, err := s.Capture(body)
	require.NoError(r.t, err)
	x, err := g.Instantiate()
	require.NoError(r.t, err)
	return x
}

// fork and join put b's work between two points of a.
func fork(e *device.Event, a, b *device.Stream) error { return errors.Join(a.Record(e), b.Wait(e)) }

func TestAMissingEdgeInACaptureIsReportedThere(t *testing.T) {
	r := graphRig(t, order.Options{})
	a, b, e := r.stream("a"), r.stream("b"), r.event("e")
	v := r.buffer(64)
	var refused error
	_, err := a.Capture(func() error {
		r.do(writes(a, v.View()), fork(e, a, b), reads(a, v.View()), reads(b, v.View()))
		refused = writes(b, v.View()) // a may still read
		return refused
	})
	require.Equal(t, refused, err)
	report := r.reported(refused)
	require.Equal(t, []string{"a", "b"}, []string{report.First.Stream, report.Second.Stream})
	require.False(t, report.First.Write)
	require.Contains(t, report.Missing, "no event was recorded")

	_, err = a.Capture(func() error {
		r.do(fork(e, a, b), writes(b, v.View()))
		return writes(a, v.View()) // without the join
	})
	require.Equal(t, "b", r.reported(err).First.Stream)

	x := r.exec(a, func() error {
		return errors.Join(writes(a, v.View()), fork(e, a, b), reads(a, v.View()), reads(b, v.View()),
			fork(e, b, a), writes(a, v.View()))
	})
	r.do(x.Launch(a), x.Launch(a), reads(a, v.View()))
	require.Len(t, r.checker.Reports(), 2)
}

// Capturing uses nothing; a launch uses all that its nodes do, in its stream's order.
func TestALaunchUsesWhatItsNodesDo(t *testing.T) {
	r := graphRig(t, order.Options{})
	up, compute, other := r.stream("up"), r.stream("compute"), r.stream("other")
	ready, done := r.event("ready"), r.event("done")
	in, out := r.buffer(64), r.buffer(64)
	r.do(writes(up, in.View()))
	x := r.exec(compute, func() error { return kernel(compute, []device.View{in.View()}, []device.View{out.View()}) })
	r.do(writes(other, out.View())) // beside what was captured

	report := r.reported(x.Launch(compute))
	require.Equal(t, "LaunchGraph", report.Second.Op)
	require.Equal(t, "compute", report.Second.Stream)
	require.Contains(t, report.Second.Kernel, "any captured at order/rig_test.go:")
	require.Contains(t, report.Second.Place, "order/graph_test.go:")
	require.ErrorContains(t, report, "LaunchGraph of any captured at")

	r.do(fork(ready, up, compute), fork(ready, other, compute), x.Launch(compute))
	report = r.reported(reads(other, out.View()))
	require.Equal(t, "LaunchGraph", report.First.Op)
	require.True(t, report.First.Write)
	require.Equal(t, "LaunchGraph", r.reported(writes(up, in.View())).First.Op)
	r.do(compute.Record(done), other.Wait(done), reads(other, in.View(), out.View()), up.Wait(done))
	report = r.reported(writes(up, in.View()))
	require.Equal(t, "other", report.First.Stream)
	r.do(fork(done, other, up), writes(up, in.View()))
}

// An exec's launches are ordered among each other, two execs' are not.
func TestLaunchesOfOneExecAreOrdered(t *testing.T) {
	r := graphRig(t, order.Options{})
	a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
	g, err := a.Capture(func() error { return writes(a, v.View()) })
	r.do(err)
	x, err := g.Instantiate()
	r.do(err)
	y, err := g.Instantiate()
	r.do(err)
	r.do(x.Launch(a), x.Launch(b), x.Launch(a))
	require.Equal(t, "LaunchGraph", r.reported(y.Launch(b)).First.Op)
	r.do(x.Launch(b), reads(b, v.View()), y.Launch(b))
}

func TestHostMemoryOfAGraph(t *testing.T) {
	r := graphRig(t, order.Options{})
	s, v, up, down := r.stream("s"), r.buffer(64), r.pinned(64), r.pinned(64)
	x := r.exec(s, func() error {
		return errors.Join(s.CopyH2D(v.View(), up.Bytes()), s.CopyD2H(down.Bytes(), v.View()), s.HostFunc(func() {}))
	})
	r.do(r.dev.HostWrites(up.Bytes()), x.Launch(s))
	report := r.reported(r.dev.HostWrites(up.Bytes()))
	require.Contains(t, report.First.Kernel, "CopyH2D captured at")
	require.Contains(t, r.reported(r.dev.HostReads(down.Bytes())).First.Kernel, "CopyD2H captured at")
	r.do(r.dev.HostReads(up.Bytes()), s.Synchronize(ctx), r.dev.HostWrites(up.Bytes()), r.dev.HostReads(down.Bytes()))
}

// What other means use is told in a capture too, and a launch uses it.
func TestUsesInACapture(t *testing.T) {
	r := graphRig(t, order.Options{})
	a, b, v := r.stream("a"), r.stream("b"), r.buffer(64)
	x := r.exec(a, func() error { return a.Uses(v.View(), device.Out) })
	r.do(x.Launch(a))
	require.Contains(t, r.reported(reads(b, v.View())).First.Kernel, "Uses captured at")
}

func TestAnUpdateChangesWhatALaunchUses(t *testing.T) {
	r := graphRig(t, order.Options{})
	a, b, v, w := r.stream("a"), r.stream("b"), r.buffer(64), r.buffer(64)
	x := r.exec(a, func() error { return writes(a, v.View()) })
	g, err := a.Capture(func() error { return writes(a, w.View()) })
	r.do(err, x.Update(g), g.Close(), x.Launch(a), writes(b, v.View()))
	require.Equal(t, "LaunchGraph", r.reported(writes(b, w.View())).First.Op)
}

func TestAListGoesOnWithGraphs(t *testing.T) {
	r := graphRig(t, order.Options{ListOnly: true})
	a, b, e, v := r.stream("a"), r.stream("b"), r.event("e"), r.buffer(64)
	x := r.exec(a, func() error {
		return errors.Join(fork(e, a, b), writes(a, v.View()), writes(b, v.View()), fork(e, b, a))
	})
	require.Len(t, r.checker.Reports(), 1)
	r.do(reads(b, v.View()), x.Launch(a))
	require.Len(t, r.checker.Reports(), 2)
}

// A capture that fails, however, leaves the streams to what they were.
func TestAFailedCaptureIsForgotten(t *testing.T) {
	r := graphRig(t, order.Options{})
	a, b, e, v := r.stream("a"), r.stream("b"), r.event("e"), r.buffer(64)
	for name, body := range map[string]func() error{
		"its own error": func() error { return errors.Join(fork(e, a, b), writes(b, v.View()), errors.New("own")) },
		"unjoined":      func() error { return errors.Join(fork(e, a, b), writes(b, v.View())) },
		"invalidated": func() error {
			_, err := a.Done()
			require.ErrorIs(t, err, device.ErrCapture)
			return nil
		},
	} {
		_, err := a.Capture(body)
		require.Error(t, err, name)
	}
	r.do(writes(a, v.View()), fork(e, a, b), writes(b, v.View()))
	r.reported(writes(a, v.View()))
}

// The protocol around a captured step: without any one of its edges there is a report.
func TestEveryEdgeAroundAGraphIsMissed(t *testing.T) {
	const depth, batches = 2, 5
	run := func(t *testing.T, rule devicetest.Rule) (reports int, fired int64) {
		drv, err := cpu.New(cpu.Options{})
		require.NoError(t, err)
		c := order.New(order.Options{ListOnly: true})
		tap := devicetest.NewTap(c.Wrap(drv))
		r := &rig{t: t, checker: c, dev: device.New(tap)}
		up, compute := r.stream("up"), r.stream("compute")
		weights := r.buffer(64)
		type slot struct {
			buf             *device.Buffer
			host            *device.HostBuffer
			ready, consumed *device.Event
			step            *device.Exec
		}
		var slots [depth]slot
		for i := range slots {
			s := slot{buf: r.buffer(64), host: r.pinned(64), ready: r.event("ready"), consumed: r.event("consumed")}
			s.step = r.exec(compute, func() error {
				return kernel(compute, []device.View{s.buf.View()}, []device.View{weights.View()})
			})
			slots[i] = s
		}
		armed := tap.Arm(rule)
		for i := range batches {
			s := &slots[i%depth]
			if i >= depth {
				r.do(up.Wait(s.consumed))
			}
			r.do(up.CopyH2D(s.buf.View(), s.host.Bytes()), up.Record(s.ready),
				compute.Wait(s.ready), s.step.Launch(compute), compute.Record(s.consumed))
		}
		return len(c.Reports()), armed.Fired()
	}
	reports, _ := run(t, devicetest.Rule{Op: devicetest.Wait})
	require.Zero(t, reports)
	for _, rule := range []devicetest.Rule{
		{Op: devicetest.Wait, Event: "consumed"}, {Op: devicetest.Wait, Event: "ready"},
		{Op: devicetest.Record, Event: "consumed"}, {Op: devicetest.Record, Event: "ready"},
	} {
		last := int64(batches)
		if rule.Event == "consumed" {
			last -= depth
		}
		for rule.Nth = 1; rule.Nth <= last; rule.Nth++ {
			rule.Swallow = true
			reports, fired := run(t, rule)
			require.Equal(t, int64(1), fired, fmt.Sprint(rule))
			require.Positive(t, reports, fmt.Sprint(rule))
		}
	}
}
