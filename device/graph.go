package device

import (
	"slices"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// A Node is one piece of work in a Graph, with the parameters that every launch replays:
//
//	Kind        NodeKind  // KernelNode, CopyNode, MemsetNode, HostNode, …
//	Op, Kernel  string    // "Launch" and the kernel's name, "CopyH2D", …
//	Grid, Block [3]uint32
//	SharedBytes uint32
//	Args        [][]byte  // a kernel's arguments
//	Dst, Src    Address   // of a copy or a memset; on the host the host's own
//	Bytes       int64     // the length, and a memset's value
//	Value       byte
//	After       []int     // the numbers of the nodes that it waits for
//	Opaque      string    // why parameters of it can't be read; empty if all can
type Node = driver.Node

// NodeKind is what a node does.
type NodeKind = driver.NodeKind

// The kinds of nodes. OtherNode is what only another library can have put there.
const (
	OtherNode  = driver.OtherNode
	EmptyNode  = driver.EmptyNode
	KernelNode = driver.KernelNode
	CopyNode   = driver.CopyNode
	MemsetNode = driver.MemsetNode
	HostNode   = driver.HostNode
)

// A Difference is one thing in which two graphs differ:
//
//	Node       int     // the node's number, -1 if there aren't equally many
//	Op, Kernel string  // what it is
//	Argument   int     // the kernel's argument, -1 for anything else
//	What       string  // "argument 2", "the source", "the grid"
//	Shape      bool    // it is no parameter, and Update can't change it
//	Was, Is    string  // the two values
//
// It is an error too: the one that errors.As finds in Update's.
type Difference = driver.Difference

// A Graph is work that Capture recorded: kernels, copies, memsets and host functions, and
// which of them wait for which. It is safe for concurrent use.
type Graph struct {
	dev     *Device
	drv     driver.Grapher
	h       driver.Graph
	nodes   []Node
	held    []*closing // never changes
	closing closing
}

// Device is the graph's device.
func (g *Graph) Device() *Device { return g.dev }

// Nodes borrows the graph's nodes, each behind those that it waits for. Two captures of
// the same calls give them in the same order.
func (g *Graph) Nodes() []Node { return g.nodes }

// Diff lists what differs between g and other, node by node: what a replay of g would
// repeat, and other does otherwise. Two captures of one step with different batches show
// so what depends on the batch. It can't see what stays the same in both and changes
// later, and of a HostFunc sees only that it is one. Graphs that are closed can be
// compared too.
func (g *Graph) Diff(other *Graph) []*Difference { return driver.Compare(g.nodes, other.nodes) }

// Instantiate makes an Exec of g, with its own copy of all parameters. The caller owns it
// until Close; g may be closed before.
func (g *Graph) Instantiate() (*Exec, error) {
	if err := g.open("Instantiate"); err != nil {
		return nil, err
	}
	h, err := g.drv.Instantiate(g.h)
	if err != nil {
		return nil, err
	}
	g.dev.live.execs.Add(1)
	g.dev.live.allocations.Add(1)
	return &Exec{dev: g.dev, drv: g.drv, h: h, nodes: g.nodes, held: g.dev.blocks.again(g.held)}, nil
}

func (g *Graph) open(op string) error {
	if g.closing.closed.Load() {
		return g.dev.stale(op, "the graph was closed before")
	}
	return nil
}

// Close frees the graph. Every call but Diff and Nodes is ErrInvalid from then on, and a
// second Close does nothing.
func (g *Graph) Close() error {
	return g.closing.close(func() error {
		if err := g.drv.FreeGraph(g.h); err != nil {
			return err
		}
		g.dev.blocks.release(g.held)
		g.dev.live.graphs.Add(-1)
		return nil
	})
}

// An Exec is a Graph made ready to be launched, any number of times. It is safe for
// concurrent use.
type Exec struct {
	dev     *Device
	drv     driver.Grapher
	h       driver.Exec
	closing closing

	mu    sync.Mutex // CUDA wants one caller at a time
	nodes []Node
	held  []*closing
}

// Device is the exec's device.
func (x *Exec) Device() *Device { return x.dev }

// Launch submits the whole graph to s as one item: it begins when the work submitted to s
// before is done, and what is submitted to s later waits for all of it. Launches of one
// Exec run one after another, in whatever streams. Nothing is allocated.
func (x *Exec) Launch(s *Stream) error {
	const op = "LaunchGraph"
	if s == nil {
		return x.dev.invalid(op, "the stream is nil")
	}
	if s.dev != x.dev {
		return s.dev.invalid(op, "the graph belongs to "+x.dev.seenFrom(s.dev))
	}
	if err := s.submits(op); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.open(op); err != nil {
		return err
	}
	return x.drv.LaunchGraph(s.h, x.h)
}

// Update gives x the parameters of g, for launches from now on; those submitted before
// keep theirs. The graphs must be of one shape: the same kernels, copies, memsets and
// host functions in the same order. If they are not, errors.As finds the *Difference in
// the error, which is ErrInvalid, and x is as it was.
func (x *Exec) Update(g *Graph) error {
	const op = "UpdateExec"
	if g == nil {
		return x.dev.invalid(op, "the graph is nil")
	}
	if g.dev != x.dev {
		return x.dev.invalid(op, "the graph belongs to "+g.dev.seenFrom(x.dev))
	}
	if err := g.open(op); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.open(op); err != nil {
		return err
	}
	if d := driver.FirstShape(driver.Compare(x.nodes, g.nodes)); d != nil {
		return driver.ShapeError(op, x.dev.name, d)
	}
	held := x.dev.blocks.again(g.held)
	if err := x.drv.UpdateExec(x.h, g.h); err != nil {
		x.dev.blocks.release(held)
		return err
	}
	x.dev.blocks.release(x.held)
	x.nodes, x.held = g.nodes, held
	return nil
}

// Nodes borrows the nodes that the next launch runs.
func (x *Exec) Nodes() []Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clip(x.nodes)
}

func (x *Exec) open(op string) error {
	if x.closing.closed.Load() {
		return x.dev.stale(op, "the exec was closed before")
	}
	return nil
}

// Close frees the exec. Its launches must be done. With an error it stays, and Close may
// be tried again. A second Close does nothing.
func (x *Exec) Close() error {
	return x.closing.close(func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err := x.drv.FreeExec(x.h); err != nil {
			return err
		}
		x.dev.blocks.release(x.held)
		x.held = nil
		x.dev.live.execs.Add(-1)
		return nil
	})
}
