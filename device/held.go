package device

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// A graph keeps addresses, and no driver asks it when memory is freed. So the Buffers
// and HostBuffers of the graph's device that it has an address of are held until the
// graph and its Execs are closed: their own Close is refused until then.

// held knows the memory of a device's open Buffers and HostBuffers.
type held struct {
	mu sync.Mutex
	by map[*closing]*block
}

// A block is one's memory: its place, or places if kernels see it elsewhere, and how many
// graphs hold it.
type block struct {
	spans []span
	holds int
}

// A span is from lo to before hi.
type span struct{ lo, hi uint64 }

// add makes memory of owner known.
func (h *held) add(owner *closing, addr driver.Address, bytes int64) {
	if bytes <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = make(map[*closing]*block)
	}
	b := h.by[owner]
	if b == nil {
		b = new(block)
		h.by[owner] = b
	}
	s := span{uint64(addr), uint64(addr) + uint64(bytes)}
	if !slices.Contains(b.spans, s) {
		b.spans = append(b.spans, s)
	}
}

// free forgets owner's memory if free gives it back. It refuses to while graphs hold it.
func (h *held) free(op string, d *Device, owner *closing, free func() error) error {
	h.mu.Lock()
	b := h.by[owner]
	if b != nil && b.holds > 0 {
		h.mu.Unlock()
		return d.invalid(op, "a graph has the memory's address: close the graph, and what was instantiated of it, first")
	}
	delete(h.by, owner)
	h.mu.Unlock()
	err := free()
	if err != nil && b != nil {
		h.mu.Lock()
		h.by[owner] = b
		h.mu.Unlock()
	}
	return err
}

// hold holds all memory that the nodes have an address of. Any 8 bytes of an argument may
// be one.
func (h *held) hold(nodes []Node) []*closing {
	var addrs []uint64
	for i := range nodes {
		n := &nodes[i]
		addrs = append(addrs, uint64(n.Dst), uint64(n.Src))
		for _, a := range n.Args {
			for ; len(a) >= 8; a = a[8:] {
				addrs = append(addrs, binary.LittleEndian.Uint64(a))
			}
		}
	}
	slices.Sort(addrs)
	h.mu.Lock()
	defer h.mu.Unlock()
	var owners []*closing
	for owner, b := range h.by {
		if slices.ContainsFunc(b.spans, func(s span) bool { return s.hasOneOf(addrs) }) {
			b.holds++
			owners = append(owners, owner)
		}
	}
	return owners
}

// hasOneOf reports whether one of the sorted addresses lies in s.
func (s span) hasOneOf(addrs []uint64) bool {
	i, _ := slices.BinarySearch(addrs, s.lo)
	return i < len(addrs) && addrs[i] < s.hi
}

// again holds once more what is held. If the graph is being closed meanwhile, some of it
// may be gone.
func (h *held) again(owners []*closing) []*closing {
	h.mu.Lock()
	defer h.mu.Unlock()
	var more []*closing
	for _, owner := range owners {
		if b := h.by[owner]; b != nil {
			b.holds++
			more = append(more, owner)
		}
	}
	return more
}

func (h *held) release(owners []*closing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, owner := range owners {
		h.by[owner].holds--
	}
}
