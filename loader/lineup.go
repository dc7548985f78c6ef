package loader

import (
	"sync"
	"sync/atomic"
)

// lineup is the open batches in the order of delivery, and their rows for the workers.
// These claim rows of the first batch that has any, and wait while there is none.
//
// Thousands of batches a second pass here, by way of every processor: what is done for
// each takes no lock, and no longer for many open batches than for few.
type lineup struct {
	_ [128]byte
	// front is the number of the first batch that may have rows which were never claimed,
	// entered that behind the last batch of which rows were handed over.
	front, entered atomic.Int64
	returned       atomic.Int32 // the number of spans in back
	parked         atomic.Int32 // workers that wait, apart from those who are being woken
	begun          atomic.Int32 // workers that were begun and have not retired: others were not needed so far
	allowed        atomic.Int32 // how many may be
	held           atomic.Int64 // the front that the dispatcher waits for, 0 if it waits for none
	_              [128]byte

	unfilled       atomic.Int64 // batches that rows were handed over of, and that are not filled
	ended, stopped atomic.Bool  // nothing will enter any more; what is open need not be filled
	_              [128]byte

	// batches are those that are open, by their number: more than order can hold.
	batches   [2 * lookAhead]atomic.Pointer[batch]
	few       chan struct{} // tells the dispatcher that front has come to held
	more      chan struct{} // a token for each worker that is being woken
	begin     func()
	inspector *inspector

	mu   sync.Mutex
	back []returned // rows that were claimed and given back
	_    [128]byte

	handed int64 // rows of all batches so far; the dispatcher's
}

// returned is rows of a batch.
type returned struct {
	*batch
	span
}

// init makes a lineup for so many workers, and never more than most of them. begin begins
// one, when there are rows and all those that were begun have some.
func (l *lineup) init(workers, most int, i *inspector, begin func()) {
	l.inspector, l.begin = i, begin
	l.allowed.Store(int32(workers))
	l.few, l.more = make(chan struct{}, 1), make(chan struct{}, most)
	l.back = make([]returned, 0, 2*workers)
}

// allow changes how many workers there may be. Those that are too many retire when they have
// read what they claimed; the others need no word of it, since whoever claims rows wakes one
// for what is left.
func (l *lineup) allow(workers int) {
	l.allowed.Store(int32(workers))
	l.tell()
}

// batch is the batch of that number, or one of a later number in its place, whose claims
// tell that all rows of this one are claimed.
func (l *lineup) batch(number int64) *batch { return l.batches[number%int64(len(l.batches))].Load() }

// hand lets the workers claim so many more rows of b; last says that there will be no
// others. b is new, or was the last one that rows were handed over of.
func (l *lineup) hand(b *batch, rows int, last bool) {
	l.handed += int64(rows)
	b.through = l.handed
	if l.entered.Load() == b.number {
		l.unfilled.Add(1)
		l.batches[b.number%int64(len(l.batches))].Store(b)
		b.raise(rows, last)
		l.entered.Store(b.number + 1)
	} else {
		b.raise(rows, last)
	}
	if last && b.exhausted(b.number) { // no worker passes it, perhaps
		l.advance()
	}
	if rows > 0 {
		l.wake()
	}
}

// advance moves front past the batches that will never have rows to claim again.
func (l *lineup) advance() {
	for {
		at := l.front.Load()
		if at == l.entered.Load() || !l.batch(at).exhausted(at) {
			return
		}
		l.pass(at)
	}
}

// pass moves front past a batch, if it is there.
func (l *lineup) pass(at int64) {
	if !l.front.CompareAndSwap(at, at+1) {
		return
	}
	if held := l.held.Load(); held != 0 && at+1 >= held {
		l.letGo()
	}
}

// letGo has the dispatcher look again, in hold.
func (l *lineup) letGo() {
	select {
	case l.few <- struct{}{}:
	default:
	}
}

// hold waits until no more than so many rows are left to claim behind the first batch that
// has any. So the dispatcher asks for no slot long before it is of use, and the time for
// which it waits for one tells who is slow.
func (l *lineup) hold(rows int) {
	from, entered := l.front.Load(), l.entered.Load()
	until := from
	for ; until < entered; until++ {
		// One of another number is open again: all rows of this one are claimed.
		if b := l.batch(until); b.number == until && l.handed-b.through < int64(rows) {
			break
		}
	}
	if until == from {
		return
	}
	l.held.Store(until) // before the look at front, which workers move meanwhile
	for l.front.Load() < until && !l.stopped.Load() {
		<-l.few
	}
	l.held.Store(0)
}

// claim waits for rows and claims up to n of them, all of one batch. It returns nil when
// there are none any more.
func (l *lineup) claim(n int) (*batch, span) {
	for {
		if l.returned.Load() > 0 {
			if b, rows := l.takeBack(n); b != nil {
				l.tell()
				return b, rows
			}
		}
		at := l.front.Load()
		if at < l.entered.Load() {
			b := l.batch(at)
			rows, exhausted := b.take(at, n)
			if exhausted {
				l.advance()
			}
			if rows.lo < rows.hi {
				l.tell()
				return b, rows
			}
			if exhausted {
				continue
			}
		}
		if l.over() {
			return nil, span{}
		}
		l.await()
	}
}

// tell wakes a worker for what is left to claim. That one wakes the next.
func (l *lineup) tell() {
	if l.spare() && l.any() {
		l.wake()
	}
}

// spare reports whether there is a worker without rows.
func (l *lineup) spare() bool {
	return l.parked.Load() > 0 || l.begun.Load() < l.allowed.Load()
}

// any reports whether there are rows to claim, or a batch to pass.
func (l *lineup) any() bool {
	if l.returned.Load() > 0 {
		return true
	}
	at := l.front.Load()
	return at < l.entered.Load() && l.batch(at).any(at)
}

// await waits until there may be rows to claim, or will be none.
func (l *lineup) await() {
	l.parked.Add(1) // before the look at the rows: who makes some looks at parked behind that
	if !l.any() && !l.over() || !l.unpark() {
		l.inspector.start()
		<-l.more
	}
}

// unpark takes one worker off those that wait. Its token is owed from here on.
func (l *lineup) unpark() bool {
	for {
		n := l.parked.Load()
		if n == 0 {
			return false
		}
		if l.parked.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// wake has one more worker look for rows: one that waits, or else one that is not begun.
func (l *lineup) wake() {
	if l.rouse() {
		return
	}
	for {
		n := l.begun.Load()
		if n >= l.allowed.Load() {
			return
		}
		if l.begun.CompareAndSwap(n, n+1) {
			l.begin()
			return
		}
	}
}

// rouse wakes one worker, if one waits. It reports whether one did.
func (l *lineup) rouse() bool {
	if !l.unpark() {
		return false
	}
	l.more <- struct{}{} // there is room for one from each
	return true
}

// giveBack lets other workers claim what one has claimed of b and not read.
func (l *lineup) giveBack(b *batch, rows span) {
	l.mu.Lock()
	l.back = append(l.back, returned{b, rows})
	l.returned.Store(int32(len(l.back)))
	l.mu.Unlock()
	l.wake()
}

// takeBack claims up to n rows of those given back, of the first batch that has any, and no
// more of them than leave some to each worker: they may take long.
func (l *lineup) takeBack(n int) (*batch, span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.back) == 0 {
		return nil, span{}
	}
	first := 0
	for i := range l.back {
		if l.back[i].number < l.back[first].number {
			first = i
		}
	}
	s := &l.back[first]
	b, taken := s.batch, span{s.lo, s.lo + min(n, max(1, (s.hi-s.lo)/(2*int(l.allowed.Load()))))}
	if s.lo = taken.hi; s.lo == s.hi {
		last := len(l.back) - 1
		*s, l.back[last] = l.back[last], returned{}
		l.back = l.back[:last]
		l.returned.Store(int32(last))
	}
	return b, taken
}

// over reports whether no worker is needed any more. While a batch is open, rows of it
// may be given back.
func (l *lineup) over() bool {
	return l.ended.Load() && (l.stopped.Load() || l.unfilled.Load() == 0)
}

// leave says that a batch is filled.
func (l *lineup) leave() {
	if l.unfilled.Add(-1) == 0 {
		l.release()
	}
}

// end says that nothing will enter any more.
func (l *lineup) end() {
	l.ended.Store(true)
	l.release()
}

// stop says that what is open need not be filled: the run's context is done.
func (l *lineup) stop() {
	l.stopped.Store(true)
	l.letGo()
	l.release()
}

// release wakes all workers if none is needed any more.
func (l *lineup) release() {
	if !l.over() {
		return
	}
	for l.rouse() {
	}
}
