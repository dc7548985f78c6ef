package order

import (
	"runtime"

	"github.com/leat-go/leat/device/driver"
)

const opLaunchGraph = "LaunchGraph"

// LaunchGraph makes all accesses of the graph's nodes at one point of the stream, behind
// the earlier launches of the same exec.
func (d *Device) LaunchGraph(h driver.Stream, x driver.Exec) error {
	g, err := d.grapher(opLaunchGraph)
	if err != nil {
		return err
	}
	at := site{op: opLaunchGraph}
	runtime.Callers(2, at.stack[:])
	var changes uint64
	if !d.checker.options.ListOnly {
		f, found, now := d.findLaunch(h, x, at, false, 0)
		if found {
			return d.fail(opLaunchGraph, d.checker.report(f))
		}
		changes = now
	}
	if err := g.LaunchGraph(h, x); err != nil {
		return d.ended(err)
	}
	f, found, _ := d.findLaunch(h, x, at, true, changes)
	if !found {
		return nil
	}
	e := d.checker.report(f)
	if d.checker.options.ListOnly {
		return nil
	}
	return d.fail(opLaunchGraph, e)
}

// findLaunch looks for an access that a node of the launch is unordered with. If the
// driver has accepted the launch it notes the nodes' accesses, and looks only if others
// have come since changes were counted.
func (d *Device) findLaunch(h driver.Stream, x driver.Exec, at site, accepted bool, changes uint64) (f finding, found bool, now uint64) {
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	known, launched := d.handles[h], d.execs[x]
	if known == nil || launched == nil || known.stream.capture != nil || d.lost.Load() {
		return f, false, c.changes
	}
	s := known.stream
	s.submits()
	seen := c.snapshot(s.seen)
	seen.join(launched.seen)
	defer func() { c.spare = append(c.spare, seen) }()
	now = c.changes
	uses := launched.graph.uses
	if !accepted || c.options.ListOnly || changes != c.changes {
		for i := range uses {
			at.kernel = uses[i].label
			if f, found = c.find(d, &c.shadow, uses[i].spans, seen, s, c.site(at)); found {
				break
			}
		}
	}
	if !accepted {
		return f, found, now
	}
	s.seen.join(launched.seen)
	for i := range uses {
		at.kernel = uses[i].label
		c.note(&c.shadow, s, c.site(at), uses[i].spans)
	}
	launched.seen.copyOf(s.seen)
	return f, found, now
}
