package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/goid"
)

var _ driver.Grapher = (*gpu)(nil)

// captureThreadLocal is the mode of all captures: the driver then forbids the capturing
// thread what is unsafe, and leaves other threads alone.
const captureThreadLocal = 1

// A capture is one under way. The driver knows which streams it has; what is kept here is
// who captures and what was refused first. Calls are refused without asking the driver, so
// that every version of it refuses the same ones.
type capture struct {
	origin driver.Stream
	name   string // the stream's
	owner  uint64 // the goroutine
	number uint64 // from 1, in the order of beginning
	broken bool   // a call was refused that the driver wasn't asked about
	first  string // the first refusal, for the errors of what comes later
}

// captures are those of a device. While there are none a call pays for one atomic load.
type captures struct {
	active atomic.Int32
	begun  atomic.Uint64 // the number of the newest

	mu   sync.Mutex
	list []*capture
	// loose are the host functions captured since there were none, less those in graphs.
	loose []uintptr
}

func (cs *captures) begin(c *capture) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.number = cs.begun.Add(1)
	cs.list = append(cs.list, c)
	cs.active.Add(1)
}

// find is the capture that began on s, nil if there is none.
func (cs *captures) find(s driver.Stream) *capture {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.list {
		if c.origin == s {
			return c
		}
	}
	return nil
}

// end forgets c. The host functions that went into its graph are kept by that; when no
// capture is left, the others have failed with theirs and are dropped.
func (cs *captures) end(c *capture, kept []uintptr) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = slices.DeleteFunc(cs.list, func(o *capture) bool { return o == c })
	cs.loose = slices.DeleteFunc(cs.loose, func(n uintptr) bool { return slices.Contains(kept, n) })
	if cs.active.Add(-1) == 0 {
		releaseHostFuncs(cs.loose)
		cs.loose = nil
	}
}

// underWay reports whether a capture up to a number has not ended.
func (cs *captures) underWay(number uint64) bool {
	if cs.active.Load() == 0 {
		return false
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) > 0 && cs.list[0].number <= number
}

// own is the capture of the calling goroutine, nil if it has none.
func (cs *captures) own() *capture {
	who := goid.Current()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.list {
		if c.owner == who {
			return c
		}
	}
	return nil
}

// refused notes err, of the driver, as what spoilt the captures of the calling goroutine,
// or all if it has none: the driver does not say which one a stream is in.
func (cs *captures) refused(err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.spoilt() {
		c.refused(err)
	}
}

// spoilt are the captures that a refusal to the calling goroutine spoils. cs.mu is held.
func (cs *captures) spoilt() []*capture {
	who := goid.Current()
	mine := slices.DeleteFunc(slices.Clone(cs.list), func(c *capture) bool { return c.owner != who })
	if len(mine) > 0 {
		return mine
	}
	return cs.list
}

func (c *capture) refused(err error) {
	if c.first == "" {
		c.first = err.Error()
	}
}

// first is what spoilt the captures that a refusal to the calling goroutine would spoil,
// empty if nothing has.
func (cs *captures) first() string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.spoilt() {
		if c.first != "" {
			return c.first
		}
	}
	return ""
}

// spoil is the error of a call that a capture forbids, and that the driver is not asked
// about. It makes the driver invalidate the capture, as it would have for the call, so
// that what is submitted later is refused too. cs.mu is held meanwhile: a capture in the
// list has not ended, and its stream is not in the next one.
func (d *gpu) spoil(op string, reason driver.CaptureError, hint string) error {
	err := &driver.Error{Op: op, Device: d.name, Err: reason, Hint: hint}
	cs := &d.captures
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.spoilt() {
		c.refused(err)
		if !c.broken {
			c.broken = true
			d.invalidate(c)
		}
	}
	return err
}

// invalidate asks whether the work of c's stream is done, which no version of the driver
// allows in a capture, to whatever thread. Should one allow it, EndCapture still fails.
func (d *gpu) invalidate(c *capture) {
	if g, err := d.enter("Capture"); err == nil {
		g.call(d.cu.streamQuery, uintptr(c.origin))
		_ = g.leave(success)
	}
}

// unguarded refuses a call that asks, waits, allocates or frees to a goroutine that
// captures. Older drivers allow some of them, and then the graph lies.
func (d *gpu) unguarded(op string) error {
	if d.captures.active.Load() == 0 {
		return nil
	}
	if c := d.captures.own(); c != nil {
		return d.spoil(op, driver.CaptureUnsupported, fmt.Sprintf("by the goroutine that captures stream %q", c.name))
	}
	return nil
}

// uncaptured is unguarded for a call about an event.
func (d *gpu) uncaptured(op string, h driver.Event) error {
	if e := d.events.get(h); e != nil && e.captured.Load() > 0 {
		return d.capturedEvent(op, e)
	}
	return d.unguarded(op)
}

// capturedEvent is the error of a call about e, whose newest Record is in a capture. If that
// has ended no other is spoilt: the driver, which would spoil it, is not asked.
func (d *gpu) capturedEvent(op string, e *event) error {
	if d.captures.underWay(e.captured.Load()) {
		return d.spoil(op, driver.CapturedEvent, e.String())
	}
	return &driver.Error{Op: op, Device: d.name, Err: driver.CapturedEvent, Hint: e.String() + ": record it again, outside"}
}

// isCapturing asks the driver whether s is captured. While nothing is, it isn't asked.
func (g *group) isCapturing(s driver.Stream) bool {
	if g.gpu.captures.active.Load() == 0 {
		return false
	}
	r := g.call(g.gpu.cu.streamIsCapturing, uintptr(s), g.result0())
	return r == success && g.number(0) != 0
}

// captured is isCapturing in a group of its own.
func (d *gpu) captured(op string, s driver.Stream) bool {
	if d.captures.active.Load() == 0 || d.streams.get(s) == nil {
		return false
	}
	g, err := d.enter(op)
	if err != nil {
		return false // and the call will say so
	}
	yes := g.isCapturing(s)
	_ = g.leave(success)
	return yes
}

// pinnedFor refuses a copy in a capture from or to host memory that isn't pinned.
func (d *gpu) pinnedFor(op string, s driver.Stream, mem []byte) error {
	if !d.captured(op, s) || d.pinned.has(mem) {
		return nil
	}
	return d.spoil(op, driver.CaptureUnsupported, "the host memory is not pinned by this device, so that the call may block, and the graph would keep its address: use AllocHost or RegisterHost")
}

// graphs refuses op where the driver lacks a function that graphs need.
func (d *gpu) graphs(op string) error {
	if err := d.refused(op); err != nil {
		return err
	}
	for _, s := range d.cu.table() {
		if s.without == withoutGraphs && *s.address == 0 {
			return d.unsupported(op, s.name)
		}
	}
	return nil
}

// BeginCapture wants its goroutine locked to its thread until EndCapture, as package
// device does: the driver takes the end from the same thread alone.
func (d *gpu) BeginCapture(s driver.Stream) error {
	const op = "BeginCapture"
	if err := d.graphs(op); err != nil {
		return err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	c := &capture{origin: s, name: g.name, owner: goid.Current()}
	r := g.call(d.cu.streamBeginCapture, uintptr(s), captureThreadLocal)
	if r == illegalState {
		err := g.refine(r, driver.CaptureActive, fmt.Sprintf("on stream %q", g.name))
		_ = g.leave(success)
		return err
	}
	if r == success {
		d.captures.begin(c)
	}
	return g.leave(r)
}

// EndCapture also reads the graph's nodes, for which its calls are in the driver already.
func (d *gpu) EndCapture(s driver.Stream) (driver.Graph, error) {
	const op = "EndCapture"
	c := d.captures.find(s)
	if c != nil && c.owner != goid.Current() {
		return 0, d.spoil(op, driver.CaptureWrongThread, fmt.Sprintf("on stream %q", c.name))
	}
	if err := d.graphs(op); err != nil {
		if c != nil {
			d.captures.end(c, nil)
		}
		return 0, err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.streamEndCapture, uintptr(s), g.result0())
	h := driver.Graph(g.handle())
	if c == nil {
		reason := driver.CaptureUnmatched
		if r != illegalState && r != captureUnmatched {
			return 0, g.leave(r)
		}
		err := g.refine(r, reason, fmt.Sprintf("on stream %q", g.name))
		_ = g.leave(success)
		return 0, err
	}
	made, err := d.ended(g, c, r, h)
	if err != nil && r == success && h != 0 {
		g.call(d.cu.graphDestroy, uintptr(h))
	}
	if left := g.leave(success); err == nil {
		err = left
	}
	if err != nil {
		d.captures.end(c, nil)
		return 0, err
	}
	retainHostFuncs(made.funcs)
	d.captures.end(c, made.funcs)
	releaseHostFuncs(made.funcs) // the capture's hold
	d.graphsMade.put(h, made)
	return h, nil
}

// ended is what became of c: a graph, whose nodes it reads, or the reason why not.
func (d *gpu) ended(g *group, c *capture, r result, h driver.Graph) (*graph, error) {
	switch {
	case r == success && c.broken:
		return nil, &driver.Error{Op: g.op, Device: d.name, Err: driver.CaptureInvalidated, Hint: c.first}
	case r != success:
		err := g.failure(r, foundEarlier)
		if e := new(driver.Error); c.first != "" && errors.As(err, &e) && errors.Is(err, driver.CaptureInvalidated) {
			e.Hint = c.first
		}
		return nil, err
	}
	return g.readGraph(uintptr(h))
}

// Capturing implements driver.Grapher.
func (d *gpu) Capturing(s driver.Stream) (bool, error) {
	const op = "Capturing"
	if err := d.graphs(op); err != nil {
		return false, err
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return false, err
	}
	r := g.call(d.cu.streamIsCapturing, uintptr(s), g.result0())
	yes := g.number(0) != 0
	return yes && r == success, g.leave(r)
}
