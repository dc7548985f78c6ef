package serve

import (
	"slices"
	"time"
)

// Stats is what a Queue counted since New, all of it at one instant.
type Stats struct {
	// Came is how many requests Do was called for, but not those after Shutdown. Each is one
	// of the four below, or open, or outside.
	Came int64
	// Answered have their answer, and Failed an error of their own, of their step or of the
	// pipeline. GaveUp are those whose context ended before that, and Refused those for
	// which there was no place.
	Answered, Failed, GaveUp, Refused int64

	// Open is how many requests have a place now. Of these so many are in Encode, and
	// Waiting in the line for a batch; the others are in one.
	Open, Encoding, Waiting int
	// Late is how many of those Waiting would be answered behind their deadline.
	Late int
	// Outside is how many calls of Do wait for a place.
	Outside int
	// Tenants is how many there are with any of these requests.
	Tenants int
	// InFlight is how many batches are under way.
	InFlight int

	// Batches and Rows were begun. Sizes[n] of the batches had n rows.
	Batches, Rows int64
	Sizes         []int64

	// Latency is the time from the call of Do to the answer, of those answered; Line that
	// from the call of Do to the beginning of a batch, of all that came into one.
	Latency, Line Durations

	// Busy is how long batches were under way, of the time Up since New.
	Busy, Up time.Duration
}

// Occupancy is the share of the time in which batches were under way, from 0 to 1.
func (s Stats) Occupancy() float64 { return share(float64(s.Busy), float64(s.Up)) }

// Fill is how full batches were, from 0 to 1.
func (s Stats) Fill() float64 {
	return share(float64(s.Rows), float64(s.Batches)*float64(len(s.Sizes)-1))
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

// counters is what line counts.
type counters struct {
	came, answered, failed, gaveUp, refused int64

	batches, rows int64
	sizes         []int64
	latency, line Durations

	busy  time.Duration // while batches were under way, up to the last that was alone
	since time.Duration // they are under way
}

func newCounters(maxBatch int) counters { return counters{sizes: make([]int64, maxBatch+1)} }

func (c *counters) answer(took time.Duration) {
	c.answered++
	c.latency.note(took)
}

func (c *counters) departed(g *group, now time.Duration) {
	if g.depth == 0 {
		c.since = now
	}
	c.batches++
	c.rows += int64(len(g.members))
	c.sizes[len(g.members)]++
	for _, e := range g.members {
		c.line.note(now - e.came)
	}
}

// arrived counts the end of a batch; alone says that no other is under way.
func (c *counters) arrived(now time.Duration, alone bool) {
	if alone {
		c.busy += now - c.since
	}
}

// stats are the line's.
func (l *line) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, now := &l.counters, l.now()
	s := Stats{
		Came: c.came, Answered: c.answered, Failed: c.failed, GaveUp: c.gaveUp, Refused: c.refused,
		Open: l.open, Encoding: l.encoding, Waiting: l.ready.n + len(l.late.list), Late: len(l.late.list),
		Outside: l.outside, Tenants: len(l.tenants), InFlight: len(l.inFlight),
		Batches: c.batches, Rows: c.rows, Sizes: slices.Clone(c.sizes),
		Latency: c.latency.clone(), Line: c.line.clone(),
		Busy: c.busy, Up: now,
	}
	if len(l.inFlight) > 0 {
		s.Busy += now - c.since
	}
	return s
}
