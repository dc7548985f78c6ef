package loader

import (
	"sync"
	"sync/atomic"
	"time"
)

// lineup is the open batches, in the order of delivery, until each is filled. Workers
// claim rows of the first that has any, and find out which batches are overtaken.
type lineup struct {
	_ [128]byte
	// front is the first batch that has rows to claim, as far as is known, nil if
	// there is none. It is a member. It and parked are read for every claim.
	front  atomic.Pointer[batch]
	parked atomic.Int32 // workers that wait, apart from those who are being woken
	held   atomic.Bool  // whether the dispatcher waits, in hold
	_      [128]byte

	workers int

	mu          sync.Mutex
	first, last *batch
	more        sync.Cond // there are rows to claim, or there will be none
	few         sync.Cond // there may be few rows left to claim
	ended       bool      // nothing will enter any more
	stopped     bool      // what is open need not be filled
}

func (l *lineup) init(workers int) {
	l.workers = workers
	l.more.L, l.few.L = &l.mu, &l.mu
}

// enter adds b behind the others.
func (l *lineup) enter(b *batch) {
	b.ahead, b.behind = l.last, nil
	if l.last != nil {
		l.last.behind = b
	} else {
		l.first = b
	}
	l.last = b
}

// hand lets the workers claim the rows of b before limit. b is new, or was the last one
// that rows were handed over of.
func (l *lineup) hand(b *batch, limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != b {
		l.enter(b)
	}
	b.limit.Store(int64(limit))
	l.offer(b)
}

// giveBack lets other workers claim what one has claimed of b and not read.
func (l *lineup) giveBack(b *batch, rows span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.claims.giveBack(rows)
	l.offer(b)
}

// offer says that b has rows to claim.
func (l *lineup) offer(b *batch) {
	b.wanted.Store(false)
	if front := l.front.Load(); front == nil || front.number > b.number {
		l.front.Store(b)
	}
	l.wake()
}

// wake wakes one worker, if one waits. It wakes the next when it leaves rows behind.
func (l *lineup) wake() {
	if l.parked.Load() > 0 {
		l.parked.Add(-1)
		l.more.Signal()
	}
}

// claim waits for rows and claims up to n of them, all of one batch. It returns nil when
// there are none any more.
func (l *lineup) claim(n int) (*batch, span) {
	for b := l.front.Load(); ; {
		if b == nil {
			if b = l.await(); b == nil {
				return nil, span{}
			}
		}
		rows := l.claimOf(b, n)
		if rows.lo == rows.hi {
			b = nil
			continue
		}
		if l.parked.Load() > 0 || l.held.Load() {
			l.tell(b)
		}
		return b, rows
	}
}

// tell wakes a worker for what is left of b. If nothing is, it lets the dispatcher know,
// and those who read b that there are too few rows for all workers.
func (l *lineup) tell(b *batch) {
	rows := b.any()
	if rows && l.parked.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if rows {
		l.wake()
		return
	}
	if l.parked.Load() > 0 {
		b.wanted.Store(true)
	}
	l.advance(l.front.Load())
}

// advance finds the first batch from b on that has rows to claim.
func (l *lineup) advance(b *batch) {
	for b != nil && !b.any() {
		b = b.behind
	}
	l.front.Store(b)
	l.few.Signal()
}

// hold waits until no more than so many rows are left to claim behind the first batch that
// has any. So the dispatcher asks for no slot long before it is of use, and the time for
// which it waits for one tells who is slow.
func (l *lineup) hold(rows int) {
	if l.front.Load() == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held.Store(true) // before the look at the rows, which workers claim meanwhile
	for !l.stopped && l.plenty(rows) {
		l.few.Wait()
	}
	l.held.Store(false)
}

func (l *lineup) plenty(rows int) bool {
	b := l.front.Load()
	for b != nil && !b.any() {
		b = b.behind
	}
	if b == nil {
		return false
	}
	for b = b.behind; b != nil && rows > 0; b = b.behind {
		rows -= int(b.limit.Load())
	}
	return rows <= 0
}

func (l *lineup) claimOf(b *batch, n int) span {
	if b.returned.Load() > 0 {
		l.mu.Lock()
		rows := b.takeBack(n, l.workers)
		l.mu.Unlock()
		if rows.lo < rows.hi {
			return rows
		}
	}
	return b.take(n)
}

// await returns the first batch that has rows to claim, and waits until there is one.
// It returns nil when there will be none.
func (l *lineup) await() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		b := l.first
		for ; b != nil && !b.any(); b = b.behind {
			if !b.wanted.Load() {
				b.wanted.Store(true)
			}
		}
		l.front.Store(b)
		l.few.Signal()
		if b != nil || l.over() {
			return b
		}
		l.parked.Add(1)
		l.more.Wait()
	}
}

// over reports whether no worker is needed any more. While a batch is open, rows of it
// may be given back.
func (l *lineup) over() bool { return l.ended && (l.stopped || l.first == nil) }

// leave takes b out, which is filled.
func (l *lineup) leave(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Read under the lock, so that no batch is overtaken after it is filled.
	now := time.Now()
	times := &b.filled.Times
	times.Filled = now
	if !times.Overtaken.Before(now) { // at the same instant, which is not before it
		times.Overtaken = time.Time{}
	}
	if !b.dropped.Load() {
		// Whoever overtook a batch has overtaken all those before it too.
		for a := b.ahead; a != nil && a.filled.Times.Overtaken.IsZero(); a = a.ahead {
			a.filled.Times.Overtaken = now
		}
	}
	if l.front.Load() == b {
		l.advance(b.behind)
	}
	if b.ahead != nil {
		b.ahead.behind = b.behind
	} else {
		l.first = b.behind
	}
	if b.behind != nil {
		b.behind.ahead = b.ahead
	} else {
		l.last = b.ahead
	}
	b.ahead, b.behind = nil, nil
	l.release()
}

// end says that nothing will enter any more.
func (l *lineup) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.release()
}

// stop says that what is open need not be filled: the run's context is done.
func (l *lineup) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.few.Signal()
	l.release()
}

// release wakes all workers if none is needed any more.
func (l *lineup) release() {
	if l.over() {
		l.parked.Store(0)
		l.more.Broadcast()
	}
}
