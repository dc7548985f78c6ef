package loader

import "sync/atomic"

// claims are the rows of a batch that no worker has claimed yet, and a count of those
// that are done. All workers write to it, so it has cache lines of its own.
type claims struct {
	_ [128]byte
	// next is the first row that was never claimed, in the low half. The high half is
	// the lap: a slot's batch is opened again and again, and a worker that was
	// interrupted between its look and its claim must not claim by what it saw then.
	next atomic.Uint64
	// limit is where the rows end that can be claimed so far: the dispatcher hands
	// them over by raising it, and writes all else of the batch before.
	limit atomic.Int64
	// returned is the number of spans in back.
	returned atomic.Int32
	// written counts the rows that were written whole: what was skipped, for
	// whatever reason, can't be taken for data (R3).
	written atomic.Int64
	// left counts the rows that are not done, claimed or not, and one for the
	// dispatcher until it has handed over all that there are.
	left atomic.Int64

	_ [128]byte
	// wanted is set while a worker has looked for rows here in vain. Workers read it
	// for every sample, and nothing else in its cache line changes often.
	wanted atomic.Bool
	_      [127]byte

	back []span // rows that were claimed and given back; the run's lineup guards it
}

// span is rows lo to hi, hi excluded.
type span struct{ lo, hi int }

// begin makes rows ready to be handed over.
func (c *claims) begin(rows int) {
	// In this order: whoever claims by the old lap finds nothing, and by the new one
	// neither.
	c.limit.Store(0)
	c.next.Store((c.next.Load()>>32 + 1) << 32)
	c.written.Store(0)
	c.left.Store(int64(rows) + 1)
	c.wanted.Store(false)
}

// take claims up to n rows, none if there are none.
func (c *claims) take(n int) span {
	for {
		next := c.next.Load()
		lo, limit := int64(uint32(next)), c.limit.Load()
		if lo >= limit {
			return span{}
		}
		hi := min(lo+int64(n), limit)
		if c.next.CompareAndSwap(next, next+uint64(hi-lo)) {
			return span{int(lo), int(hi)}
		}
	}
}

// any reports whether there are rows to claim.
func (c *claims) any() bool {
	return int64(uint32(c.next.Load())) < c.limit.Load() || c.returned.Load() > 0
}

// giveBack returns rows that were claimed and not read. The lineup is locked.
func (c *claims) giveBack(s span) {
	c.back = append(c.back, s)
	c.returned.Store(int32(len(c.back)))
}

// takeBack claims up to n rows of those given back, and no more of them than leave
// some to each of so many workers: they may take long. The lineup is locked.
func (c *claims) takeBack(n, workers int) span {
	last := len(c.back) - 1
	if last < 0 {
		return span{}
	}
	s := &c.back[last]
	n = min(n, max(1, (s.hi-s.lo)/(2*workers)))
	taken := span{s.lo, s.lo + n}
	if s.lo = taken.hi; s.lo == s.hi {
		c.back = c.back[:last]
		c.returned.Store(int32(last))
	}
	return taken
}
