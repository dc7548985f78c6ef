package cpu

import (
	"encoding/binary"
	"slices"

	"github.com/leat-go/leat/device/driver"
)

// A program is what a capture kept: the operations in order of their submission, with the
// Records and Waits between them. A launch submits them anew, those of the stream on
// which the capture began to the stream of the launch, and those of each stream forked
// off to one of the exec's own. So replayed work is ordered by what ordered it then.
//
// The operations are never run themselves, but count as users of their memory, which can
// so not be freed.
type program struct {
	refs     int // graphs and execs
	branches []branch
	nodes    []node
	items    []item
	records  int
	shown    []driver.Node
}

// A branch is a stream of the capture, the first that on which it began.
type branch struct {
	name     string
	priority int
}

// A node is an operation and the call that submitted it.
type node struct {
	op     *op
	call   Call
	branch int
	after  []int
}

// An item is a Record, a Wait or a node of a branch.
type item struct {
	kind   opKind
	branch int
	index  int // of the record in the program's, or of the node
}

// exec is a program with the streams that its branches run on.
type exec struct {
	program *program
	streams []*stream    // of branches 1 and up
	records []*recording // of the newest launch, while that is being submitted
	last    *recording   // the end of the newest launch; nil before the first
}

// describe makes the nodes as callers see them.
func (p *program) describe() {
	p.shown = make([]driver.Node, len(p.nodes))
	for i := range p.nodes {
		p.shown[i] = p.nodes[i].describe()
	}
}

func (n *node) describe() driver.Node {
	o := n.op
	x := driver.Node{Op: o.kind.String(), After: slices.Clone(n.after)}
	switch o.kind {
	case hostFunc:
		x.Kind = driver.HostNode
	case memset:
		x.Kind, x.Dst, x.Bytes, x.Value = driver.MemsetNode, o.to, int64(len(o.dst)), o.value
	case launch:
		l := &o.launch.Launch
		x.Kind, x.Kernel = driver.KernelNode, l.Kernel.Name
		x.SharedBytes = l.SharedBytes
		for k := range l.Grid {
			x.Grid[k], x.Block[k] = max(l.Grid[k], 1), max(l.Block[k], 1)
		}
		for k := range l.Args.Len() {
			x.Args = append(x.Args, argument(l.Args.Arg(k)))
		}
	default:
		x.Kind, x.Dst, x.Src, x.Bytes = driver.CopyNode, o.to, o.from, int64(len(o.dst))
	}
	return x
}

func argument(a *driver.Arg) []byte {
	b := binary.LittleEndian.AppendUint64(nil, a.Value)
	return b[:min(len(b), max(4, int(a.Size)))]
}

// dropProgram ends a hold on p; the last lets go of its operations.
func (d *Device) dropProgram(p *program) {
	p.refs--
	if p.refs > 0 {
		return
	}
	for i := range p.nodes {
		d.release(p.nodes[i].op)
	}
	p.nodes, p.items = nil, nil // shown lives on
}

// dropGraphs is for Close.
func (d *Device) dropGraphs() {
	for len(d.captures) > 0 {
		c := d.captures[0]
		d.endCapture(c)
		d.dropProgram(&c.program)
	}
	for _, p := range d.graphs {
		d.dropProgram(p)
	}
	for _, x := range d.execs {
		d.dropProgram(x.program)
	}
	d.graphs, d.execs = nil, nil
}

func (d *Device) graph(call string, h driver.Graph) (*program, error) {
	if d.closed {
		return nil, d.fail(call, driver.ErrClosed, "")
	}
	p, ok := d.graphs[h]
	if !ok {
		return nil, d.fail(call, driver.ErrInvalid, "no such graph on this device")
	}
	return p, nil
}

func (d *Device) exec(call string, h driver.Exec) (*exec, error) {
	if d.closed {
		return nil, d.fail(call, driver.ErrClosed, "")
	}
	x, ok := d.execs[h]
	if !ok {
		return nil, d.fail(call, driver.ErrInvalid, "no such exec on this device")
	}
	return x, nil
}

// GraphNodes implements driver.Grapher.
func (d *Device) GraphNodes(h driver.Graph) ([]driver.Node, error) {
	const call = "GraphNodes"
	d.mu.Lock()
	defer d.unlock()
	p, err := d.graph(call, h)
	if err == nil {
		err = d.trip(Call{Op: call})
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(p.shown), nil
}

// FreeGraph implements driver.Grapher. It succeeds after a fault too.
func (d *Device) FreeGraph(h driver.Graph) error {
	const call = "FreeGraph"
	d.mu.Lock()
	defer d.unlock()
	p, err := d.graph(call, h)
	if err == nil {
		err = d.trip(Call{Op: call})
	}
	if err != nil {
		return err
	}
	delete(d.graphs, h)
	d.dropProgram(p)
	return nil
}

// Instantiate implements driver.Grapher.
func (d *Device) Instantiate(h driver.Graph) (driver.Exec, error) {
	const call = "Instantiate"
	d.mu.Lock()
	defer d.unlock()
	if err := d.endedError(call); err != nil {
		return 0, err
	}
	p, err := d.graph(call, h)
	if err == nil {
		err = d.trip(Call{Op: call})
	}
	if err == nil {
		err = d.unguarded(call)
	}
	if err != nil {
		return 0, err
	}
	x := new(exec)
	d.give(x, p)
	handle := driver.Exec(d.newHandle())
	d.execs[handle] = x
	return handle, nil
}

// give makes x run p from now on.
func (d *Device) give(x *exec, p *program) {
	p.refs++
	if x.program != nil {
		d.dropProgram(x.program)
	}
	x.program = p
	for len(x.streams) < len(p.branches)-1 {
		b := p.branches[len(x.streams)+1]
		s := &stream{name: b.name, number: uint64(d.made), priority: b.priority}
		d.made++
		d.working[s] = struct{}{}
		x.streams = append(x.streams, s)
	}
	x.records = make([]*recording, p.records)
}

// FreeExec implements driver.Grapher. It succeeds after a fault too.
func (d *Device) FreeExec(h driver.Exec) error {
	const call = "FreeExec"
	d.mu.Lock()
	defer d.unlock()
	x, err := d.exec(call, h)
	if err == nil {
		err = d.trip(Call{Op: call})
	}
	if err == nil {
		err = d.unguarded(call)
	}
	if err != nil {
		return err
	}
	if x.last != nil && x.last.state == pending && d.fault == nil {
		return d.fail(call, driver.ErrInvalid, "a launch of it is not done")
	}
	delete(d.execs, h)
	for _, s := range x.streams {
		s.freed = true
		d.forget(s)
	}
	if x.last != nil {
		d.unref(x.last)
	}
	d.dropProgram(x.program)
	return nil
}

// UpdateExec implements driver.Grapher.
func (d *Device) UpdateExec(xh driver.Exec, gh driver.Graph) error {
	const call = "UpdateExec"
	d.mu.Lock()
	defer d.unlock()
	if err := d.endedError(call); err != nil {
		return err
	}
	x, err := d.exec(call, xh)
	if err != nil {
		return err
	}
	p, err := d.graph(call, gh)
	if err == nil {
		err = d.trip(Call{Op: call})
	}
	if err == nil {
		err = d.unguarded(call)
	}
	if err != nil {
		return err
	}
	if diff := driver.FirstShape(driver.Compare(x.program.shown, p.shown)); diff != nil {
		return driver.ShapeError(call, d.name, diff)
	}
	d.give(x, p)
	return nil
}
