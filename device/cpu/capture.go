package cpu

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/goid"
)

var _ driver.Grapher = (*Device)(nil)

// A capture keeps the work of its streams instead of running it. Guarded by the
// device's mutex.
type capture struct {
	owner   uint64    // the goroutine that captures
	streams []*stream // in the order in which they joined; the first began it
	deps    [][]int   // of each stream: the nodes that its next one waits for
	program program
	broken  string // what has invalidated it, empty if nothing has
	ended   bool
}

// A captured event's newest Record is in a capture.
type captured struct {
	capture *capture
	record  int   // its number among the capture's records
	deps    []int // the nodes that it is behind
}

func (c *capture) member(s *stream) int { return slices.Index(c.streams, s) }

// join takes s into the capture. What is submitted to it comes behind deps.
func (c *capture) join(s *stream, deps []int) {
	s.capture = c
	c.streams = append(c.streams, s)
	c.deps = append(c.deps, slices.Clone(deps))
	c.program.branches = append(c.program.branches, branch{name: s.name, priority: s.priority})
}

// BeginCapture implements driver.Grapher.
func (d *Device) BeginCapture(sh driver.Stream) error {
	const call = "BeginCapture"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return err
	}
	if s.capture != nil {
		return d.fail(call, driver.CaptureActive, on(s))
	}
	c := &capture{owner: goid.Current()}
	c.join(s, nil)
	d.captures = append(d.captures, c)
	return nil
}

// EndCapture implements driver.Grapher.
func (d *Device) EndCapture(sh driver.Stream) (driver.Graph, error) {
	const call = "EndCapture"
	d.mu.Lock()
	defer d.unlock()
	if d.closed {
		return 0, d.fail(call, driver.ErrClosed, "")
	}
	s, ok := d.streams[sh]
	if !ok {
		return 0, d.fail(call, driver.ErrInvalid, "no such stream on this device")
	}
	c := s.capture
	switch {
	case c == nil:
		return 0, d.fail(call, driver.CaptureUnmatched, on(s))
	case c.streams[0] != s:
		return 0, d.spoil(call, driver.CaptureUnmatched, fmt.Sprintf("it began on stream %q, and stream %q was forked off", c.streams[0].name, s.name), c)
	case c.owner != goid.Current():
		return 0, d.spoil(call, driver.CaptureWrongThread, on(s), c)
	}
	d.endCapture(c)
	err := d.endedError(call)
	if err == nil {
		err = d.trip(Call{Op: call, Stream: s.name})
	}
	if err == nil {
		err = d.whole(call, c)
	}
	if err != nil {
		d.dropProgram(&c.program)
		return 0, err
	}
	c.program.describe()
	h := driver.Graph(d.newHandle())
	d.graphs[h] = &c.program
	c.program.refs = 1
	return h, nil
}

// endCapture makes the streams of c what they were.
func (d *Device) endCapture(c *capture) {
	for _, s := range c.streams {
		s.capture = nil
	}
	c.ended = true
	d.captures = slices.DeleteFunc(d.captures, func(o *capture) bool { return o == c })
}

// whole is why c makes no graph, nil if it does.
func (d *Device) whole(call string, c *capture) error {
	if c.broken != "" {
		return d.fail(call, driver.CaptureInvalidated, c.broken)
	}
	p := &c.program
	waitedFor := make([]bool, len(p.nodes))
	for i := range p.nodes {
		for _, n := range p.nodes[i].after {
			waitedFor[n] = true
		}
	}
	for i := range p.nodes {
		if !waitedFor[i] && !slices.Contains(c.deps[0], i) {
			return d.fail(call, driver.CaptureUnjoined,
				fmt.Sprintf("stream %q must wait for an event recorded behind the last %s of stream %q", c.streams[0].name, p.nodes[i].op.kind, c.streams[p.nodes[i].branch].name))
		}
	}
	return nil
}

// Capturing implements driver.Grapher.
func (d *Device) Capturing(sh driver.Stream) (bool, error) {
	const call = "Capturing"
	d.mu.Lock()
	defer d.unlock()
	s, err := d.stream(call, sh)
	if err != nil {
		return false, err
	}
	if err := d.trip(Call{Op: call, Stream: s.name}); err != nil {
		return false, err
	}
	return s.capture != nil, nil
}

func on(s *stream) string { return fmt.Sprintf("on stream %q", s.name) }

// spoil is the error of a call that captures forbid, which invalidates them.
func (d *Device) spoil(call string, reason driver.CaptureError, hint string, captures ...*capture) error {
	err := d.fail(call, reason, hint)
	for _, c := range captures {
		if c.broken == "" {
			c.broken = err.Error()
		}
	}
	return err
}

// uncaptured refuses a call that asks about s or waits for it while it is captured.
func (d *Device) uncaptured(call string, s *stream) error {
	if s.capture == nil {
		return d.unguarded(call)
	}
	return d.spoil(call, driver.CaptureUnsupported, on(s), s.capture)
}

// unguarded refuses a call that asks, waits, allocates or frees to a goroutine that
// captures. Of others nothing is known to go wrong.
func (d *Device) unguarded(call string) error {
	if len(d.captures) == 0 {
		return nil
	}
	who := goid.Current()
	mine := slices.DeleteFunc(slices.Clone(d.captures), func(c *capture) bool { return c.owner != who })
	if len(mine) == 0 {
		return nil
	}
	return d.spoil(call, driver.CaptureUnsupported, "by the goroutine that captures stream "+strconv.Quote(mine[0].streams[0].name), mine...)
}

// uncapturedEvent refuses a call that asks about e or waits for it.
func (d *Device) uncapturedEvent(call string, e *event) error {
	if e.captured == nil {
		return d.unguarded(call)
	}
	return d.capturedEvent(call, e)
}

func (d *Device) capturedEvent(call string, e *event) error {
	hint := fmt.Sprintf("event %q", e.Name)
	if e.captured.capture.ended {
		return d.fail(call, driver.CapturedEvent, hint+": record it again, outside")
	}
	return d.spoil(call, driver.CapturedEvent, hint, e.captured.capture)
}

// recordInto is Record in a capture.
func (d *Device) recordInto(e *event, s *stream) error {
	const call = "Record"
	c := s.capture
	if err := d.intact(call, c); err != nil {
		return err
	}
	if e.newest != nil {
		d.unref(e.newest)
		e.newest = nil
	}
	i := c.member(s)
	e.captured = &captured{capture: c, record: c.program.records, deps: slices.Clone(c.deps[i])}
	c.program.items = append(c.program.items, item{kind: record, branch: i, index: c.program.records})
	c.program.records++
	return nil
}

// waitInto is Wait by a captured stream, or for a captured event.
func (d *Device) waitInto(s *stream, e *event) error {
	const call = "Wait"
	c := s.capture
	x := e.captured
	switch {
	case x == nil:
		return d.spoil(call, driver.CaptureIsolation, fmt.Sprintf("event %q was not recorded in the capture of stream %q", e.Name, c.streams[0].name), c)
	case x.capture.ended && c != nil:
		return d.spoil(call, driver.CaptureIsolation, fmt.Sprintf("event %q was recorded in another capture", e.Name), c)
	case x.capture.ended:
		return d.capturedEvent(call, e)
	case c != nil && c != x.capture:
		return d.spoil(call, driver.CaptureMerge, fmt.Sprintf("event %q is of the capture of stream %q", e.Name, x.capture.streams[0].name), c, x.capture)
	}
	c = x.capture
	if err := d.intact(call, c); err != nil {
		return err
	}
	if s.capture == nil {
		c.join(s, nil)
	}
	i := c.member(s)
	for _, n := range x.deps {
		if at, ok := slices.BinarySearch(c.deps[i], n); !ok {
			c.deps[i] = slices.Insert(c.deps[i], at, n)
		}
	}
	c.program.items = append(c.program.items, item{kind: wait, branch: i, index: x.record})
	return nil
}

// intact refuses a call in a capture that is invalidated.
func (d *Device) intact(call string, c *capture) error {
	if c.broken == "" {
		return nil
	}
	return d.fail(call, driver.CaptureInvalidated, c.broken)
}

// keep takes o, which was submitted by call to a captured stream.
func (d *Device) keep(o *op, call Call) error {
	c := o.stream.capture
	if err := d.intact(call.Op, c); err != nil {
		d.release(o)
		return err
	}
	p := &c.program
	i := c.member(o.stream)
	n := len(p.nodes)
	p.nodes = append(p.nodes, node{op: o, call: call, branch: i, after: c.deps[i]})
	p.items = append(p.items, item{kind: o.kind, branch: i, index: n})
	c.deps[i] = []int{n}
	return nil
}
