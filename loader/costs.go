package loader

import (
	"math"
	"sync/atomic"
	"time"
)

// Coster is a Dataset that knows what its samples cost before they are read. Those that cost
// much are begun before their turn, as far ahead as there are slots, and delivered in their
// turn. Of a dataset that is no Coster this is learnt as samples are read, and used from the
// second epoch on. A composition has the costs of the datasets below it, if all tell them.
type Coster interface {
	// Cost is how long sample index takes to read, in any unit that is the same for all
	// samples: its bytes, if nothing better is known. It reads no data. It is called by one
	// goroutine of each Run for every sample of an epoch, so that it is to take far less
	// time than the sample; once there is a cost of twice the average or more in a batch,
	// workers claim its samples one by one.
	Cost(index int) float64
}

// costs is what is known of how long samples take. All Runs of a Loader share it: nothing but
// when a sample is read depends on it.
type costs struct {
	given  func(epoch, index int) float64 // nil if nobody says
	n      int64
	learnt atomic.Pointer[[]atomic.Uint32] // a byte a sample, four to a word; nil until one was dear
}

const (
	// dearly is how many times the average a sample costs that is begun early.
	dearly = 2
	// leastDear is what a sample takes at least that is worth a table.
	leastDear = time.Millisecond
	// maxLearnt is how many samples a table is made for, of a byte each.
	maxLearnt = 1 << 28
	// A level is an eighth of a factor of two, from costFloor up.
	costFloor = 100 * time.Microsecond
	maxCost   = 1e18
)

// newCosts is what is known of a dataset's samples.
func newCosts(l *Loader) *costs {
	c := &costs{n: l.split.samples}
	if top, ok := l.dataset.(Coster); ok {
		c.given = func(_, index int) float64 { return top.Cost(index) }
		return c
	}
	for _, leaf := range l.leaves {
		if _, ok := leaf.(Coster); !ok {
			return c
		}
	}
	c.given = func(epoch, index int) float64 {
		leaf := l.tree.leaf(epoch, index)
		return l.leaves[leaf.Source].(Coster).Cost(leaf.Index)
	}
	return c
}

// known reports whether of may tell samples apart. c is nil if the data is no Dataset.
func (c *costs) known() bool {
	return c != nil && (c.given != nil || c.learnt.Load() != nil)
}

// of is a sample's cost, 0 if it is not known.
func (c *costs) of(epoch, index int) float64 {
	if c.given != nil {
		cost := c.given(epoch, index)
		if !(cost > 0) { // NaN too
			return 0
		}
		return min(cost, maxCost)
	}
	table := *c.learnt.Load()
	level := table[index/4].Load() >> (index % 4 * 8) & 0xff
	if level == 0 {
		return 0
	}
	return math.Exp2(float64(level-1) / 8)
}

// note learns what a sample took, where others usually take as long as usual.
func (c *costs) note(index int, took, usual time.Duration) {
	if c.given != nil {
		return
	}
	if c.learnt.Load() == nil {
		if took < leastDear || took < dearly*usual || c.n > maxLearnt {
			return
		}
		table := make([]atomic.Uint32, (c.n+3)/4)
		c.learnt.CompareAndSwap(nil, &table)
	}
	word, shift := &(*c.learnt.Load())[index/4], index%4*8
	for level := costLevel(took); ; {
		old := word.Load()
		if word.CompareAndSwap(old, old&^(0xff<<shift)|level<<shift) {
			return
		}
	}
}

// costLevel is 1 to 255.
func costLevel(took time.Duration) uint32 {
	ratio := float64(max(took, costFloor)) / float64(costFloor)
	return 1 + uint32(min(8*math.Log2(ratio)+0.5, 254))
}
