package order

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/leat-go/leat/device/driver"
)

// A block is memory that a device gave out or pinned.
type block struct {
	lo, hi   uint64
	kind     string
	site     *site
	describe func(offset, bytes int64) (name, hint string)
}

// An alias is where kernels see pinned memory.
type alias struct {
	lo, hi uint64
	to     uint64 // the host's own address of lo
}

// memory is what is known of addresses. Those of the host and of all devices are one
// space: CUDA's are so, and the CPU device's are like no other's.
type memory struct {
	blocks  []*block // sorted, not overlapping
	aliases []alias  // sorted, not overlapping
}

func start(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// add notes a new block. What it overlaps is gone: its end was not told.
func (m *memory) add(b *block) {
	m.blocks = slices.DeleteFunc(m.blocks, func(o *block) bool { return o.lo < b.hi && b.lo < o.hi })
	i, _ := slices.BinarySearchFunc(m.blocks, b.lo, func(o *block, p uint64) int { return cmp.Compare(o.lo, p) })
	m.blocks = slices.Insert(m.blocks, i, b)
}

// find is the block that p lies in, nil if there is none.
func (m *memory) find(p uint64) *block {
	i, ok := slices.BinarySearchFunc(m.blocks, p, func(b *block, p uint64) int {
		switch {
		case b.hi <= p:
			return -1
		case b.lo > p:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return m.blocks[i]
}

// remove forgets b and where kernels saw it.
func (m *memory) remove(b *block) {
	if i := slices.Index(m.blocks, b); i >= 0 {
		m.blocks = slices.Delete(m.blocks, i, i+1)
	}
	m.aliases = slices.DeleteFunc(m.aliases, func(a alias) bool { return a.to < b.hi && b.lo < a.to+(a.hi-a.lo) })
}

// see notes that kernels see mem at p.
func (m *memory) see(mem []byte, p uint64) {
	lo, n := start(mem), uint64(len(mem))
	if lo == p {
		return
	}
	if b := m.find(lo); b != nil { // then they see all of it there
		p -= lo - b.lo
		lo, n = b.lo, b.hi-b.lo
	}
	a := alias{lo: p, hi: p + n, to: lo}
	if slices.Contains(m.aliases, a) {
		return
	}
	m.aliases = slices.DeleteFunc(m.aliases, func(o alias) bool { return o.lo < a.hi && a.lo < o.hi })
	i, _ := slices.BinarySearchFunc(m.aliases, a.lo, func(o alias, p uint64) int { return cmp.Compare(o.lo, p) })
	m.aliases = slices.Insert(m.aliases, i, a)
}

// at is where an address lies in the one space.
func (m *memory) at(p uint64) uint64 {
	i, ok := slices.BinarySearchFunc(m.aliases, p, func(a alias, p uint64) int {
		switch {
		case a.hi <= p:
			return -1
		case a.lo > p:
			return 1
		}
		return 0
	})
	if !ok {
		return p
	}
	return m.aliases[i].to + p - m.aliases[i].lo
}

// A span is a range of memory that a call uses.
type span struct {
	lo, hi uint64
	write  bool
}

func hostSpan(mem []byte, write bool) span {
	return span{start(mem), start(mem) + uint64(len(mem)), write}
}

func (c *Checker) deviceSpan(p driver.Address, bytes int64, write bool) span {
	lo := c.memory.at(uint64(p))
	return span{lo, lo + uint64(max(bytes, 0)), write}
}

// name describes [lo, hi), which lies in b or, where that is nil, in no known block.
// It is called without the mutex: describe is somebody else's code.
func (b *block) name(lo, hi uint64) (name, hint string) {
	if b == nil {
		return fmt.Sprintf("memory at %#x that no device gave out", lo), ""
	}
	if b.describe != nil {
		return b.describe(int64(lo-b.lo), int64(min(hi, b.hi)-lo))
	}
	at, _ := b.site.place()
	return fmt.Sprintf("%s of %d bytes from %s", b.kind, b.hi-b.lo, at), ""
}
