package loader

import (
	"sync"
	"sync/atomic"
	"time"
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
	dear           atomic.Int32 // and of batches in first
	parked         atomic.Int32 // workers that wait, apart from those who are being woken
	begun          atomic.Int32 // workers that were begun and have not retired: others were not needed so far
	allowed        atomic.Int32 // how many may be
	held           atomic.Int64 // the front that the dispatcher waits or watches for, 0 if it does not
	low            atomic.Int64 // when front came there, in nanoseconds since the Run's start
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
	// first are batches with rows that are begun before all others, in order.
	first []dearBatch
	_     [128]byte

	handed int64 // rows of all batches so far; the dispatcher's, and what watch has found
	until  int64
}

// returned is rows of a batch.
type returned struct {
	*batch
	span
}

// dearBatch is a batch of which some rows are begun early.
type dearBatch struct {
	*batch
	number int64 // that it had: by now it may be another
	turns  int
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
		l.low.Store(int64(time.Since(l.inspector.run.began)))
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
	until, ok := l.fewer(rows)
	if ok {
		return
	}
	l.held.Store(until) // before the look at front, which workers move meanwhile
	for l.front.Load() < until && !l.stopped.Load() {
		<-l.few
	}
	l.held.Store(0)
}

// fewer is the front at which no more than so many rows are left. ok is set if it is there.
func (l *lineup) fewer(rows int) (until int64, ok bool) {
	from, entered := l.front.Load(), l.entered.Load()
	for until = from; until < entered; until++ {
		// One of another number is open again: all rows of this one are claimed.
		if b := l.batch(until); b.number == until && l.handed-b.through < int64(rows) {
			break
		}
	}
	return until, until == from
}

// watch is hold for a dispatcher that does not wait: watched tells when it would have gone on.
func (l *lineup) watch(rows int) {
	until, ok := l.fewer(rows)
	if l.until = until; ok {
		l.until = 0
	}
	l.held.Store(l.until)
}

// watched is when few rows were left since watch, between two times.
func (l *lineup) watched(from, to time.Time) time.Time {
	l.held.Store(0)
	switch {
	case l.until == 0:
		return from
	case l.front.Load() < l.until:
		return to
	}
	low := l.inspector.run.began.Add(time.Duration(l.low.Load()))
	if low.Before(from) {
		return from
	}
	if low.After(to) {
		return to
	}
	return low
}

// early has the workers begin the first turns of b, which was handed over, before their turn.
func (l *lineup) early(b *batch, turns int) {
	if turns == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first = append(l.first, dearBatch{b, b.number, turns})
	l.dear.Store(int32(len(l.first)))
}

// takeEarly claims the next row that has to be begun before its turn, of the first batch that
// has one.
func (l *lineup) takeEarly() (*batch, span) {
	l.mu.Lock()
	defer l.mu.Unlock()
	front := l.front.Load()
	rows, begun := l.inspector.run.loader.layout.batch, 0
	if front < l.entered.Load() {
		begun, _ = l.batch(front).turn(front)
	}
	left := l.first[:0]
	for i, b := range l.first {
		turn, ok := b.turn(b.number)
		if !ok || turn >= b.turns {
			continue // it has none any more
		}
		left = append(left, b)
		if ahead := int(b.number-front)*rows - begun; ahead > int(b.leads[turn].Load()) || !b.takeAt(b.number, turn) {
			continue
		}
		l.keep(append(left, l.first[i+1:]...))
		return b.batch, b.rowOf(turn)
	}
	l.keep(left)
	return nil, span{}
}

// keep keeps what is left of first.
func (l *lineup) keep(left []dearBatch) {
	clear(l.first[len(left):])
	l.first = left
	l.dear.Store(int32(len(left)))
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
		if l.dear.Load() > 0 {
			if b, rows := l.takeEarly(); b != nil {
				l.tell()
				return b, rows
			}
		}
		at := l.front.Load()
		if at < l.entered.Load() {
			b := l.batch(at)
			single := b.single.Load()
			if single {
				n = 1
			}
			rows, exhausted := b.take(at, n)
			if exhausted {
				l.advance()
			}
			if rows.lo < rows.hi {
				l.tell()
				if single {
					rows = b.rowOf(rows.lo)
				}
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
