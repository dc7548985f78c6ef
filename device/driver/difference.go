package driver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A Difference is one thing in which two graphs differ.
type Difference struct {
	// Node is the number of the node, Kernel the name of its kernel and Op its call. Node
	// is -1 if the graphs don't have equally many.
	Node       int
	Op, Kernel string
	// Argument is the number of a kernel's argument, -1 for anything else.
	Argument int
	// What differs: "argument 2", "the source", "the grid".
	What string
	// Shape is true if it is no parameter, so that no Update gets from one to the other.
	Shape bool
	// Was and Is are the two values.
	Was, Is string
}

func (d *Difference) Error() string {
	if d.Node < 0 {
		return fmt.Sprintf("%s: %s, then %s", d.What, d.Was, d.Is)
	}
	who := d.Op
	if d.Kernel != "" {
		who = fmt.Sprintf("kernel %q", d.Kernel)
	}
	return fmt.Sprintf("node %d, %s: %s: %s, then %s", d.Node, who, d.What, d.Was, d.Is)
}

// Compare lists what differs between two graphs, node by node. Of graphs with unequally
// many nodes the first pair that differs in its shape follows the numbers.
func Compare(was, is []Node) []*Difference {
	var all []*Difference
	if len(was) != len(is) {
		all = append(all, &Difference{Node: -1, Argument: -1, What: "the number of nodes", Shape: true,
			Was: fmt.Sprint(len(was)), Is: fmt.Sprint(len(is))})
	}
	for i := range min(len(was), len(is)) {
		c := comparison{node: i, was: &was[i], is: &is[i]}
		c.shape()
		if len(was) == len(is) && len(c.found) == 0 {
			c.parameters()
		}
		all = append(all, c.found...)
		if len(was) != len(is) && len(c.found) > 0 {
			break // all that follow are shifted
		}
	}
	return all
}

// FirstShape is the first of the differences in shape, nil if there is none.
func FirstShape(all []*Difference) *Difference {
	i := slices.IndexFunc(all, func(d *Difference) bool { return d.Shape })
	if i < 0 {
		return nil
	}
	return all[i]
}

// A comparison is of two nodes.
type comparison struct {
	node    int
	was, is *Node
	found   []*Difference
}

func (c *comparison) differ(what string, argument int, shape bool, was, is string) {
	c.found = append(c.found, &Difference{Node: c.node, Op: c.was.Op, Kernel: c.was.Kernel,
		Argument: argument, What: what, Shape: shape, Was: was, Is: is})
}

func (c *comparison) shape() {
	a, b := c.was, c.is
	if a.Kind != b.Kind || a.Op != b.Op || a.Kernel != b.Kernel {
		c.differ("the work", -1, true, a.name(), b.name())
		return
	}
	if !slices.Equal(a.After, b.After) {
		c.differ("the nodes that it waits for", -1, true, fmt.Sprint(a.After), fmt.Sprint(b.After))
	}
	if len(a.Args) != len(b.Args) {
		c.differ("the number of arguments", -1, true, fmt.Sprint(len(a.Args)), fmt.Sprint(len(b.Args)))
		return
	}
	for i := range a.Args {
		if len(a.Args[i]) != len(b.Args[i]) {
			c.differ(fmt.Sprintf("the size of argument %d", i), i, true, fmt.Sprint(len(a.Args[i])), fmt.Sprint(len(b.Args[i])))
		}
	}
}

func (c *comparison) parameters() {
	a, b := c.was, c.is
	if a.Opaque != "" || b.Opaque != "" {
		c.differ("parameters that can't be compared", -1, false, unread(a), unread(b))
	}
	for i := range a.Args {
		if !bytes.Equal(a.Args[i], b.Args[i]) {
			c.differ(fmt.Sprintf("argument %d", i), i, false, Value(a.Args[i]), Value(b.Args[i]))
		}
	}
	for _, p := range []struct {
		what    string
		was, is string
	}{
		{"the grid", fmt.Sprint(a.Grid), fmt.Sprint(b.Grid)},
		{"the block", fmt.Sprint(a.Block), fmt.Sprint(b.Block)},
		{"the bytes of shared memory", fmt.Sprint(a.SharedBytes), fmt.Sprint(b.SharedBytes)},
		{"the destination", fmt.Sprintf("%#x", a.Dst), fmt.Sprintf("%#x", b.Dst)},
		{"the source", fmt.Sprintf("%#x", a.Src), fmt.Sprintf("%#x", b.Src)},
		{"the length", fmt.Sprint(a.Bytes), fmt.Sprint(b.Bytes)},
		{"the value", fmt.Sprint(a.Value), fmt.Sprint(b.Value)},
	} {
		if p.was != p.is {
			c.differ(p.what, -1, false, p.was, p.is)
		}
	}
}

func unread(n *Node) string {
	if n.Opaque == "" {
		return "read"
	}
	return n.Opaque
}

// Value is an argument's bytes for people: of 4 and 8 bytes the number, in the ways in
// which it may be meant.
func Value(b []byte) string {
	switch len(b) {
	case 4:
		v := binary.LittleEndian.Uint32(b)
		return fmt.Sprintf("%#x (int32 %d, float32 %v)", v, int32(v), math.Float32frombits(v))
	case 8:
		v := binary.LittleEndian.Uint64(b)
		return fmt.Sprintf("%#x (int64 %d, float64 %v)", v, int64(v), math.Float64frombits(v))
	}
	const most = 32
	if len(b) > most {
		return fmt.Sprintf("%x… (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%x", b)
}

// ShapeError is UpdateExec's error for a graph of another shape.
func ShapeError(op, device string, d *Difference) error {
	return &Error{Op: op, Device: device, Err: fmt.Errorf("%w: the graph has another shape: %w", ErrInvalid, d),
		Hint: "instantiate the graph instead"}
}
