package serve

import (
	"context"
	"sync"
	"time"
)

// line is who has a place, who stands in line and what is under way. It has no goroutine:
// calls of Do, the crew, the iterator that forms batches and the pipeline's end call it.
type line struct {
	options  Options
	maxBatch int
	born     time.Time
	crew     *crew
	wake     chan struct{} // wakes who forms batches; has room for one
	ending   chan struct{} // closed by abort

	mu       sync.Mutex
	tenants  map[string]*tenant
	spare    []*tenant
	turns    list[tenant] // those with ready requests, the next one first
	waiting  list[tenant] // those with requests outside
	outside  int
	open     int // requests that have a place: at most options.Limit
	encoding int
	number   uint64 // of the last request that came

	ready  list[entry] // in the order of coming
	urgent heap        // those of them that have a deadline, the soonest first
	late   heap        // those that can't be answered in time, the latest deadline first
	alarm  time.Duration

	inFlight []*group // in the order of their rows
	rows     int64    // that were handed to the pipeline
	free     []*group
	forecast forecast

	draining bool
	over     error // why nobody is let in any more
	aborted  bool  // and nobody goes on
	counters counters
}

func newLine(maxBatch int, o Options, c *crew) *line {
	return &line{
		options: o, maxBatch: maxBatch, born: time.Now(), crew: c,
		wake:     make(chan struct{}, 1),
		ending:   make(chan struct{}),
		tenants:  make(map[string]*tenant),
		turns:    list[tenant]{links: linksOfTurn},
		waiting:  list[tenant]{links: linksOfWaiting},
		ready:    list[entry]{links: linksOfEntry},
		urgent:   heap{less: isDueSooner, index: indexOfDue},
		late:     heap{less: isDueLater, index: indexOfDue},
		forecast: newForecast(o.InFlight),
		counters: newCounters(maxBatch),
	}
}

func (l *line) now() time.Duration { return time.Since(l.born) }

// enter gives e a place and has it encoded, or has it wait for one. Its error is a refusal.
func (l *line) enter(e *entry, who Caller) error {
	e.came, e.deadline = l.now(), never
	if d, ok := e.ctx.Deadline(); ok {
		// From now, since the machine's clock may have been set after l.born.
		if left := time.Until(d); left < never-e.came {
			e.deadline = e.came + left
		}
	}
	e.rank = e.came - time.Duration(who.Priority)*l.options.PriorityStep
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return l.over
	}
	l.number++
	e.number = l.number
	e.tenant = l.tenantOf(who.Tenant)
	l.counters.came++
	switch full := l.full(e.tenant); {
	case full == nil:
		l.admit(e)
	case l.options.Block:
		l.stayOutside(e)
	default:
		l.counters.refused++
		l.forget(e.tenant)
		return full
	}
	return nil
}

// admit gives e a place.
func (l *line) admit(e *entry) {
	l.open++
	e.tenant.open++
	l.encoding++
	e.state = encoding
	l.crew.start(e.of)
}

// vacate takes e's place back. It is where every place returns, once for each admit.
func (l *line) vacate(e *entry) {
	l.open--
	e.tenant.open--
	l.letIn()
	l.leaves(e)
}

// leaves is the end of e's stay, in whatever way.
func (l *line) leaves(e *entry) {
	l.forget(e.tenant)
	e.tenant = nil
	if l.draining {
		l.signal() // it may have been the last
	}
}

// ended is why nobody is let in any more, nil if that is not so.
func (l *line) ended() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil || l.over == ErrClosed {
		return l.over
	}
	return &Error{Stage: StagePipeline, Err: l.over}
}

// unused reports whether the line was closed before there was any batch: an iterator that
// gives nothing at all is a mistake elsewhere.
func (l *line) unused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over != nil && l.rows == 0
}

// nobody reports whether there is nobody left to be answered.
func (l *line) nobody() bool { return l.open == 0 && l.outside == 0 && len(l.inFlight) == 0 }

// encoded takes e over from the crew.
func (l *line) encoded(e *entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.encoding--
	switch {
	case err != nil && !e.gaveUp:
		l.settle(e, err)
	case e.gaveUp:
		l.settle(e, context.Cause(e.ctx))
	case l.aborted:
		l.settle(e, e.over(StageEncode, l.now(), l.over))
	default:
		l.lineUp(e)
		if len(l.inFlight) < l.options.InFlight && (l.ready.n >= l.maxBatch || l.due(e.came) < l.alarm) {
			l.signal()
		}
	}
}

// due is when a request that came at some time has waited for as long as it may.
func (l *line) due(came time.Duration) time.Duration {
	if l.draining {
		return 0
	}
	return came + l.options.MaxWait
}

// lineUp puts e into the line.
func (l *line) lineUp(e *entry) {
	e.state = ready
	at := l.ready.last
	for at != nil && at.came > e.came {
		at = at.links.prev
	}
	l.ready.insert(e, at)
	if e.deadline != never {
		l.urgent.push(e)
	}
	if len(e.tenant.ready.list) == 0 {
		l.turns.append(e.tenant)
	}
	e.tenant.ready.push(e)
}

// stepOut takes e out of the line.
func (l *line) stepOut(e *entry) {
	l.ready.remove(e)
	if e.deadline != never {
		l.urgent.remove(e)
	}
	e.tenant.ready.remove(e)
	if len(e.tenant.ready.list) == 0 {
		l.turns.remove(e.tenant)
	}
}

// leave is Do's, which has no more interest in e. If it is away at once Do has it back. Else
// it is still used: while it is encoded Do waits for that, and a batch goes on without it.
func (l *line) leave(e *entry) (was state, away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = e.state
	switch was {
	case outside:
		l.leaveOutside(e)
		l.counters.gaveUp++
		l.leaves(e)
		return was, true
	case ready:
		l.stepOut(e)
	case late:
		l.late.remove(e)
	case inBatch:
		l.counters.gaveUp++
		e.gaveUp = true
		l.vacate(e)
		return was, false
	case encoding:
		e.gaveUp = true
		return was, false
	case answered:
		return was, false
	}
	l.counters.gaveUp++
	l.vacate(e)
	return was, true
}

// desert is leave for a request of a batch that nobody waits for any more, because the line is
// aborted: user code that does not return, or that waits for this very request, has it. It is
// false for all others, which get their answer or their error in time.
func (l *line) desert(e *entry) (err error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.state != inBatch {
		return nil, false
	}
	l.counters.failed++
	e.gaveUp = true
	err = e.over(StageBatch, l.now(), l.over)
	l.vacate(e)
	return err, true
}

// settle answers e, which has a place or is outside, and is in no list any more: with err,
// or if that is nil with what its Decode made.
func (l *line) settle(e *entry, err error) {
	was := e.state
	switch {
	case e.gaveUp:
		l.counters.gaveUp++
	case err != nil:
		l.counters.failed++
	default:
		l.counters.answer(l.now() - e.came)
	}
	e.state, e.err = answered, err
	if was == outside {
		l.leaves(e)
	} else {
		l.vacate(e)
	}
	e.done <- struct{}{} // it has room: nobody answers twice
}

// signal wakes who forms batches.
func (l *line) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drain lets nobody in from now on, and has those who are in the line go on without waiting
// for others.
func (l *line) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.over = ErrClosed
		l.draining = true
		l.signal()
	}
}

// abort answers all with err, those in a batch by having their Do leave it, and lets nobody in
// from now on.
func (l *line) abort(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted {
		return
	}
	l.over, l.aborted = err, true
	close(l.ending)
	for l.waiting.first != nil { // before any place is free
		e := l.waiting.first.outside.first
		l.leaveOutside(e)
		l.settle(e, e.over(StagePlace, l.now(), err))
	}
	for l.ready.first != nil {
		e := l.ready.first
		l.stepOut(e)
		l.settle(e, e.over(StageLine, l.now(), err))
	}
	for len(l.late.list) > 0 {
		e := l.late.first()
		l.late.remove(e)
		l.settle(e, e.over(StageLine, l.now(), err))
	}
	l.signal()
}
