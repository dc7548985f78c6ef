package driver

import "fmt"

// Handles of graphs. 0 is never valid.
type (
	// Graph is work that was captured, with what orders it.
	Graph uintptr
	// Exec is a Graph made ready to be launched.
	Exec uintptr
)

// Grapher is a Device that captures the work of streams and launches it again as one
// item of a stream. A driver that can't is only a Device. So is a wrapper that embeds
// one, unless it passes these calls on.
//
// A capture is of one goroutine, which is locked to its OS thread from BeginCapture to
// EndCapture. Until then the stream is captured, and so is every stream that waits for
// an event recorded in the capture: what is submitted to them is kept and doesn't run.
// What the rules of captures forbid is refused with a CaptureError and, except for
// CaptureActive, invalidates the captures that it is about:
//
//   - waiting in a capture for an event that was not recorded in it;
//   - asking about or waiting for a captured stream or event, or the whole device;
//   - by the capturing goroutine, asking about or waiting for anything else, allocating,
//     pinning and freeing, execs included; other goroutines may;
//   - copies from and to host memory that isn't pinned, which would block the caller;
//   - freeing a captured stream, launching a graph into one;
//   - a capture that reaches over to another device, except by CopyPeer.
//
// In an invalidated capture every call on its streams and events is refused. EndCapture
// ends any capture, and all of its streams are then as before.
type Grapher interface {
	Device
	// BeginCapture begins to capture s. It doesn't wait for work submitted before.
	BeginCapture(s Stream) error
	// EndCapture ends the capture that began on s and returns the graph. With an error
	// there is none.
	EndCapture(s Stream) (Graph, error)
	// Capturing reports whether s is being captured.
	Capturing(s Stream) (bool, error)
	// GraphNodes describes the nodes of g, each behind those that it waits for. Two
	// captures of the same calls give them in the same order.
	GraphNodes(g Graph) ([]Node, error)
	// FreeGraph frees g. An Exec made of it lives on.
	FreeGraph(g Graph) error

	// Instantiate makes an Exec of g, which has its own copy of all parameters.
	Instantiate(g Graph) (Exec, error)
	// FreeExec frees x, whose launches must be done.
	FreeExec(x Exec) error
	// LaunchGraph submits x to s as one item, and allocates nothing: the nodes run
	// behind what was submitted to s before and behind earlier launches of x in
	// whatever stream, and before what is submitted to s later.
	LaunchGraph(s Stream, x Exec) error
	// UpdateExec gives x the parameters of g for launches from now on. If the two differ
	// in more, the error has a *Difference and x is as it was.
	UpdateExec(x Exec, g Graph) error
}

// NodeKind is what a node of a graph does.
type NodeKind uint8

// The kinds of nodes. OtherNode is what only another library can have put there.
const (
	OtherNode NodeKind = iota
	EmptyNode
	KernelNode
	CopyNode
	MemsetNode
	HostNode
)

// String is the kind in words: "kernel".
func (k NodeKind) String() string {
	names := [...]string{"other", "empty", "kernel", "copy", "memset", "host function"}
	if int(k) >= len(names) {
		return fmt.Sprintf("driver.NodeKind(%d)", uint8(k))
	}
	return names[k]
}

// A Node is one piece of work in a graph, with the parameters that every launch
// replays.
type Node struct {
	Kind NodeKind
	// Op is the call that submitted it, "CopyH2D"; for another library's work that of
	// this package that would have.
	Op string
	// Kernel is the kernel's name, empty if the driver can't tell it.
	Kernel      string
	Grid, Block [3]uint32 // as launched: no 0
	SharedBytes uint32
	// Args are the bytes of a kernel's arguments, in order.
	Args [][]byte
	// Dst and Src are a copy's or a memset's addresses, on the host the host's own.
	Dst, Src Address
	// Bytes is a copy's or a memset's length, Value a memset's byte.
	Bytes int64
	Value byte
	// After are the numbers of the nodes that it waits for, ascending.
	After []int
	// Opaque says why parameters of it can't be read, a sentence; empty if all can.
	Opaque string
}

// name is the node in errors: `kernel "add"` or its call.
func (n *Node) name() string {
	switch {
	case n.Kernel != "":
		return fmt.Sprintf("kernel %q", n.Kernel)
	case n.Op != "":
		return n.Op
	}
	return n.Kind.String()
}
