package capture

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/leat-go/leat/device"
)

// inBatch marks a normal address in the batch's own memory, and inEmpty that of an empty
// field. What begins where the batch ends is other memory.
const (
	inBatch = 1 << 63
	inEmpty = inBatch | 1<<62
)

// normal is the nodes of a capture with addresses in the batch's memory relative to it:
// equal captures of batches in different places are equal so.
func normal(nodes []device.Node, places []place) []device.Node {
	lo, hi := device.Address(math.MaxUint64), device.Address(0)
	for _, p := range places {
		if p.extent.bytes > 0 {
			lo, hi = min(lo, p.addr), max(hi, p.addr+device.Address(p.extent.bytes))
		}
	}
	relative := func(a device.Address) device.Address {
		if lo <= a && a < hi {
			return inBatch + a - lo
		}
		for i, p := range places {
			if p.extent.bytes == 0 && a == p.addr {
				return inEmpty + device.Address(i)
			}
		}
		return a
	}
	all := slices.Clone(nodes)
	for i := range all {
		n := &all[i]
		n.Dst, n.Src = relative(n.Dst), relative(n.Src)
		n.Args = slices.Clone(n.Args)
		for j, a := range n.Args {
			a = slices.Clone(a)
			for at := 0; at+8 <= len(a); at += 8 {
				v := binary.LittleEndian.Uint64(a[at:])
				binary.LittleEndian.PutUint64(a[at:], uint64(relative(device.Address(v))))
			}
			n.Args[j] = a
		}
	}
	return all
}

// doubtful is the first node of which a replay may do something else than the step would.
func doubtful(nodes []device.Node) *NodeError {
	for i := range nodes {
		n := &nodes[i]
		why := ""
		switch {
		case n.Kind == device.HostNode:
			why = "what a HostFunc has closed over can't be compared"
		case n.Op == "CopyH2D", n.Op == "CopyD2H":
			why = "a replay copies from or to the same host memory, which may be another's by then: copy before or after Run, or give numbers to Run"
		case n.Opaque != "":
			why = n.Opaque
		}
		if why != "" {
			return &NodeError{Node: i, Op: n.Op, Kernel: n.Kernel, Why: why}
		}
	}
	return nil
}
