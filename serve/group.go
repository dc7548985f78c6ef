package serve

import (
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// group is a batch under way.
type group struct {
	members []*entry // by row
	first   int64    // the number of its first row among all
	depth   int      // how many others were under way when it began
	began   time.Duration
	err     error // of its step

	// While it is decoded.
	answers Answers
	next    int
	decoded chan struct{} // has room for one
	crew    *crew
}

// group is a new one.
func (l *line) group() *group {
	if n := len(l.free); n > 0 {
		g := l.free[n-1]
		l.free = l.free[:n-1]
		return g
	}
	return &group{members: make([]*entry, 0, l.maxBatch), decoded: make(chan struct{}, 1), crew: l.crew}
}

// release takes back one that nobody refers to any more.
func (l *line) release(g *group) {
	clear(g.members)
	g.members, g.err, g.answers, g.next = g.members[:0], nil, Answers{}, 0
	l.free = append(l.free, g)
}

// underWay is the group whose rows begin with that number and which has so many.
func (l *line) underWay(first int64, rows int) (*group, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.inFlight {
		if g.first == first && len(g.members) == rows {
			return g, nil
		}
	}
	// To go on would give answers to those who did not ask for them.
	return nil, fmt.Errorf("serve: no batch of %d rows from number %d on is under way", rows, first)
}

// run decodes the members from the next one on. Each has its own error; one that ends the
// goroutine has another one go on behind it.
func (g *group) run() {
	returned := false
	defer func() {
		if returned {
			g.decoded <- struct{}{}
			return
		}
		e := g.members[g.next]
		e.err = caught(recover(), debug.Stack())
		g.next++
		g.crew.start(g)
	}()
	for ; g.next < len(g.members); g.next++ {
		g.members[g.next].err = g.members[g.next].of.decode(Answer{g.answers, g.next})
	}
	returned = true
}

// finish answers the members of g. If lost is not nil it is the error of all.
func (l *line) finish(g *group, lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.inFlight = slices.DeleteFunc(l.inFlight, func(other *group) bool { return other == g })
	if lost == nil {
		l.forecast.note(g.depth, now-g.began, now)
	}
	l.counters.arrived(now, len(l.inFlight) == 0)
	for _, e := range g.members {
		if e.gaveUp { // Do has returned long ago
			e.of.recycle()
			continue
		}
		l.settle(e, g.failure(e, now, lost))
	}
	if lost == nil { // else who still works on it must not meet another one's requests
		l.release(g)
	}
	l.signal()
}

// failure is why a member of g has no answer.
func (g *group) failure(e *entry, now time.Duration, lost error) error {
	switch {
	case lost != nil:
		return e.over(StageBatch, now, lost)
	case g.err != nil:
		return e.failed(StageStep, now, g.err)
	case e.err != nil:
		return e.failed(StageDecode, now, e.err)
	}
	return nil
}

// lose ends all groups, whose answers will not come.
func (l *line) lose(err error) {
	l.mu.Lock()
	groups := slices.Clone(l.inFlight)
	l.mu.Unlock()
	for _, g := range groups {
		l.finish(g, err)
	}
}
