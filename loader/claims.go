package loader

import "sync/atomic"

// claims are the rows of a batch that no worker has claimed yet, and a count of those
// that are done. All workers write to it, so it has cache lines of its own.
type claims struct {
	_ [128]byte
	// next is the first row that was never claimed, in the low half. The high half is
	// the batch's number: a slot's batch is opened again and again, and a worker that was
	// interrupted between its look and its claim must not claim by what it saw then.
	next atomic.Uint64
	// limit is twice the row at which those end that can be claimed so far, and one more
	// if that is the end of all: the dispatcher hands rows over by raising it, and
	// writes all else of the batch before.
	limit atomic.Int64
	// single is set if rows are claimed one by one, in the order of the batch's turns.
	single atomic.Bool
	// written counts the rows that were written whole: what was skipped, for
	// whatever reason, can't be taken for data (R3).
	written atomic.Int64
	// left counts the rows that are not done, claimed or not, and one for the
	// dispatcher until it has handed over all that there are.
	left atomic.Int64
	_    [128]byte
}

// span is rows lo to hi, hi excluded.
type span struct{ lo, hi int }

// begin makes rows ready to be handed over.
func (c *claims) begin(number int64, rows int) {
	// In this order: whoever claims by the old number finds nothing, and by the new one
	// neither.
	c.limit.Store(0)
	c.next.Store(uint64(number) << 32)
	c.written.Store(0)
	c.left.Store(int64(rows) + 1)
}

// raise hands over so many more rows. last says that there will be no others.
func (c *claims) raise(rows int, last bool) {
	limit := c.limit.Load() + 2*int64(rows)
	if last {
		limit |= 1
	}
	c.limit.Store(limit)
}

// take claims up to n rows of the batch of that number, none if there are none. exhausted
// says that there will never be others.
func (c *claims) take(number int64, n int) (rows span, exhausted bool) {
	for {
		next := c.next.Load()
		if uint32(next>>32) != uint32(number) {
			return span{}, true // it is open again already
		}
		lo, limit := int64(uint32(next)), c.limit.Load()
		if lo >= limit>>1 {
			return span{}, limit&1 != 0
		}
		hi := min(lo+int64(n), limit>>1)
		if c.next.CompareAndSwap(next, next+uint64(hi-lo)) {
			// Read again: if the dispatcher has not said yet that these were the last
			// rows, it sees that they are taken when it does.
			return span{int(lo), int(hi)}, c.limit.Load() == 2*hi+1
		}
	}
}

// turn is the next row, in the batch's turns, of the batch of that number. ok is not set if the
// batch is another one by now.
func (c *claims) turn(number int64) (turn int, ok bool) {
	next := c.next.Load()
	return int(uint32(next)), uint32(next>>32) == uint32(number)
}

// takeAt claims one row, unless it is not the next any more.
func (c *claims) takeAt(number int64, turn int) bool {
	next := uint64(number)<<32 | uint64(turn)
	return c.next.CompareAndSwap(next, next+1)
}

// any reports whether take would find rows, or that there will be none.
func (c *claims) any(number int64) bool {
	next, limit := c.next.Load(), c.limit.Load()
	return uint32(next>>32) != uint32(number) || int64(uint32(next)) < limit>>1 || limit&1 != 0
}

// exhausted reports whether take will never find rows.
func (c *claims) exhausted(number int64) bool {
	next, limit := c.next.Load(), c.limit.Load()
	return uint32(next>>32) != uint32(number) || int64(uint32(next)) >= limit>>1 && limit&1 != 0
}
