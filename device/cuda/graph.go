package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// A graph is a CUgraph, and what of it is kept here.
type graph struct {
	nodes []driver.Node
	funcs []uintptr // the numbers of its host functions
}

// An instance is a CUgraphExec. What a launch in flight may yet call is kept until the exec is
// freed, the host functions of graphs before an update included.
type instance struct {
	nodes []driver.Node
	funcs []uintptr
}

func (d *gpu) unknownGraph(op, what string) error {
	if err := d.refused(op); err != nil {
		return err
	}
	return d.invalid(op, fmt.Sprintf("no such %s on this device: was it freed?", what))
}

// GraphNodes are those that EndCapture read.
func (d *gpu) GraphNodes(h driver.Graph) ([]driver.Node, error) {
	g := d.graphsMade.get(h)
	if g == nil {
		return nil, d.unknownGraph("GraphNodes", "graph")
	}
	return slices.Clone(g.nodes), nil
}

func (d *gpu) FreeGraph(h driver.Graph) error {
	const op = "FreeGraph"
	made := d.graphsMade.take(h)
	if made == nil {
		return d.unknownGraph(op, "graph")
	}
	releaseHostFuncs(made.funcs)
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.graphDestroy, uintptr(h)))
}

func (d *gpu) Instantiate(h driver.Graph) (driver.Exec, error) {
	const op = "Instantiate"
	made := d.graphsMade.get(h)
	if made == nil {
		return 0, d.unknownGraph(op, "graph")
	}
	if err := d.unguarded(op); err != nil {
		return 0, err
	}
	g, err := d.enter(op)
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.graphInstantiate, g.result0(), uintptr(h), 0)
	x := driver.Exec(g.handle())
	if err := g.leave(r); err != nil {
		return 0, err
	}
	retainHostFuncs(made.funcs)
	d.execs.put(x, &instance{nodes: made.nodes, funcs: slices.Clone(made.funcs)})
	return x, nil
}

func (d *gpu) FreeExec(h driver.Exec) error {
	const op = "FreeExec"
	if err := d.unguarded(op); err != nil {
		return err
	}
	x := d.execs.take(h)
	if x == nil {
		return d.unknownGraph(op, "exec")
	}
	releaseHostFuncs(x.funcs)
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.graphExecDestroy, uintptr(h)))
}

func (d *gpu) LaunchGraph(s driver.Stream, h driver.Exec) error {
	const op = "LaunchGraph"
	if d.execs.get(h) == nil {
		return d.unknownGraph(op, "exec")
	}
	if d.captured(op, s) {
		return d.spoil(op, driver.CaptureUnsupported, "a graph can't be part of a graph here")
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.graphLaunch, uintptr(h), uintptr(s)))
}

// UpdateExec compares the shapes first: the driver's reasons name no argument.
func (d *gpu) UpdateExec(h driver.Exec, from driver.Graph) error {
	const op = "UpdateExec"
	x, made := d.execs.get(h), d.graphsMade.get(from)
	switch {
	case x == nil:
		return d.unknownGraph(op, "exec")
	case made == nil:
		return d.unknownGraph(op, "graph")
	case d.cu.graphExecUpdate == 0:
		return d.unsupported(op, "cuGraphExecUpdate_v2")
	}
	if err := d.unguarded(op); err != nil {
		return err
	}
	if diff := driver.FirstShape(driver.Compare(x.nodes, made.nodes)); diff != nil {
		return driver.ShapeError(op, d.name, diff)
	}
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	clear(g.text[:])
	r := g.call(d.cu.graphExecUpdate, uintptr(h), uintptr(from), g.buffer())
	if r == graphUpdateFailed {
		info := (*updateInfo)(unsafe.Pointer(&g.text[0]))
		err := g.refine(r, driver.ErrInvalid, updateFailure(info.result)+": instantiate the graph instead")
		_ = g.leave(success)
		return err
	}
	if err := g.leave(r); err != nil {
		return err
	}
	retainHostFuncs(made.funcs)
	d.execs.put(h, &instance{nodes: made.nodes, funcs: append(slices.Clone(x.funcs), made.funcs...)})
	return nil
}

// updateInfo is a CUgraphExecUpdateResultInfo, of two sources (cuda.h 12.9 and its
// bindings): an int, and two pointers.
type updateInfo struct {
	result    int32
	_         int32
	node      uintptr
	otherNode uintptr
}

// updateFailure is a CUgraphExecUpdateResult in words.
func updateFailure(r int32) string {
	reasons := [...]string{
		1: "the update failed", 2: "other nodes wait for each other", 3: "a node is of another type",
		4: "a node's kernel is another", 5: "parameters changed that can't be", 6: "a node can't be updated",
		7: "a kernel changed to one that it can't become", 8: "a node's attributes changed",
	}
	if r < 1 || int(r) >= len(reasons) {
		return fmt.Sprintf("the update failed for reason %d", r)
	}
	return reasons[r]
}
