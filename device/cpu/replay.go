package cpu

import (
	"time"

	"github.com/leat-go/leat/device/driver"
)

// LaunchGraph implements driver.Grapher. The nodes run on the engines as operations of
// their own, and are traced, delayed and checked as such.
func (d *Device) LaunchGraph(sh driver.Stream, xh driver.Exec) error {
	const call = "LaunchGraph"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	x, err := d.exec(call, xh)
	if err != nil {
		return err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return err
	}
	if s.capture != nil {
		return d.spoil(call, driver.CaptureUnsupported, "a graph can't be part of a graph here", s.capture)
	}
	if x.last != nil {
		d.enqueueWait(s, x.last)
		d.unref(x.last)
	}
	if d.model.graphLatency() > 0 {
		d.enqueue(d.newOp(launchGraph, s))
	}
	x.last = nil
	for i := range x.program.items {
		if d.ended() { // at a wait for what another device has lost
			return nil
		}
		d.replay(x, s, &x.program.items[i])
	}
	for _, r := range x.records {
		d.unref(r)
	}
	x.last = d.mark(s)
	return nil
}

// replay submits one item of a launch to s, or to the stream of its branch.
func (d *Device) replay(x *exec, s *stream, t *item) {
	if t.branch > 0 {
		s = x.streams[t.branch-1]
	}
	switch t.kind {
	case record:
		r := d.ref(d.newRecording())
		x.records[t.index] = r
		d.enqueueRecord(s, r)
	case wait:
		d.enqueueWait(s, x.records[t.index])
	default:
		n := &x.program.nodes[t.index]
		o := d.again(n.op, s)
		if d.adversary != nil {
			c := n.call
			c.N, c.Stream = d.calls, s.name
			d.adversary.prepare(o, c)
		}
		d.enqueue(o)
	}
}

// again is a new operation that does what kept does, in s.
func (d *Device) again(kept *op, s *stream) *op {
	o := d.newOp(kept.kind, s)
	o.inGraph = true
	o.dst, o.src, o.value, o.f = kept.dst, kept.src, kept.value, kept.f
	for i, a := range kept.used {
		o.used[i] = use(a)
	}
	if k := kept.launch; k != nil {
		l := d.newLaunching()
		l.Launch = k.Launch
		for i := range l.Args.Len() {
			l.used[i] = use(k.used[i])
		}
		o.launch = l
	}
	return o
}

func (d *Device) enqueueRecord(s *stream, r *recording) {
	o := d.newOp(record, s)
	o.recording = d.ref(r)
	d.enqueue(o)
}

func (d *Device) enqueueWait(s *stream, r *recording) {
	o := d.newOp(wait, s)
	o.recording = d.ref(r)
	d.enqueue(o)
}

// graphLatency is the time of a graph's launch; 0 without a model.
func (m *Model) graphLatency() time.Duration {
	switch {
	case m == nil:
		return 0
	case m.GraphLatency > 0:
		return m.GraphLatency
	}
	return m.KernelLatency
}
