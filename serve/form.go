package serve

import "time"

// form takes the requests of the next batch out of the line. If there is none to begin yet
// it returns nil and when to look again, unless signal comes before; more is false when
// there will be none.
func (l *line) form() (g *group, alarm time.Duration, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.aborted || l.over != nil && l.nobody() {
		return nil, 0, false
	}
	l.alarm = never
	if len(l.inFlight) == l.options.InFlight {
		return nil, l.alarm, true
	}
	now := l.now()
	l.judge(now)
	switch {
	case l.ready.n >= l.maxBatch, l.ready.n > 0 && now >= l.due(l.ready.first.came):
		g = l.board(now)
	case l.ready.n > 0:
		l.alarm = l.due(l.ready.first.came)
	case len(l.inFlight) == 0:
		g = l.boardLate(now)
	}
	if g != nil && len(g.members) == 0 { // all of those had gone
		l.release(g)
		return nil, now, true
	}
	return g, l.alarm, true
}

// judge tells the requests that can be answered in time, if a batch begins now, from those
// that can't.
func (l *line) judge(now time.Duration) {
	reached := now + l.forecast.of(len(l.inFlight), now)
	for len(l.urgent.list) > 0 && l.urgent.first().deadline <= reached {
		e := l.urgent.first()
		l.stepOut(e)
		e.state = late
		l.late.push(e)
	}
	for len(l.late.list) > 0 && l.late.first().deadline > reached {
		e := l.late.first()
		l.late.remove(e)
		l.lineUp(e)
	}
}

// board takes requests in the tenants' turns.
func (l *line) board(now time.Duration) *group {
	g := l.group()
	for len(g.members) < l.maxBatch && l.ready.n > 0 {
		t := l.turns.first
		e := t.ready.first()
		l.stepOut(e)
		if len(t.ready.list) > 0 { // the next one's turn
			l.turns.remove(t)
			l.turns.append(t)
		}
		l.take(g, e, now)
	}
	return l.depart(g, now)
}

// boardLate takes requests that will most likely be late, those with most time first: there
// is nothing better to do, and how long they take is news.
func (l *line) boardLate(now time.Duration) *group {
	if len(l.late.list) == 0 {
		return nil
	}
	g := l.group()
	for len(g.members) < l.maxBatch && len(l.late.list) > 0 {
		e := l.late.first()
		l.late.remove(e)
		l.take(g, e, now)
	}
	return l.depart(g, now)
}

// take puts e into g, unless its time is over: then its Do may just not have noticed.
func (l *line) take(g *group, e *entry, now time.Duration) {
	if e.ctx.Err() == nil && e.deadline > now {
		e.state = inBatch
		g.members = append(g.members, e)
		return
	}
	e.gaveUp = true
	l.settle(e, e.failed(StageLine, now, errOver))
}

// depart puts g under way, unless it is empty.
func (l *line) depart(g *group, now time.Duration) *group {
	if len(g.members) == 0 {
		return g
	}
	g.first, g.depth, g.began = l.rows, len(l.inFlight), now
	l.rows += int64(len(g.members))
	l.inFlight = append(l.inFlight, g)
	l.counters.departed(g, now)
	return g
}
