package quota

import "math"

// Cursor goes through the choices of a schedule. It is for one goroutine.
type Cursor struct {
	schedule *Schedule
	phase    int
	end      int64   // the choice that the next phase begins with
	n        int64   // choices made
	time     float64 // of the last, 0 at the beginning of a phase
	sources  []source
	heap     []int32 // of the sources, the first to be due on top
}

// source is what a cursor knows of a source in its phase.
type source struct {
	due    float64 // when it has its next turn, infinite if it has no other
	turns  int64   // in this phase
	limit  int64   // of them
	begun  int64   // turns before the phase
	first  float64 // when it is due for the first, in its turns
	period float64
}

// Cursor begins at choice 0.
func (s *Schedule) Cursor() *Cursor {
	k := len(s.limits)
	c := &Cursor{schedule: s, sources: make([]source, k), heap: make([]int32, k)}
	for i := range c.heap {
		c.heap[i] = int32(i)
	}
	c.enter(0)
	return c
}

// At is the number of the next choice.
func (c *Cursor) At() int64 { return c.n }

// Turns is how many turns a source has had.
func (c *Cursor) Turns(source int) int64 {
	s := &c.sources[source]
	return s.begun + s.turns
}

// Next makes a choice: the source, and how many turns that has had before. It is false if
// no source is left in this phase.
func (c *Cursor) Next() (source int, turn int64, ok bool) {
	if c.n == c.end {
		c.enter(c.phase + 1)
	}
	source = int(c.heap[0])
	s := &c.sources[source]
	if s.due > math.MaxFloat64 {
		return 0, 0, false
	}
	turn = s.begun + s.turns
	c.time = s.due
	c.n++
	s.turns++
	s.plan()
	c.sink(0)
	return source, turn, true
}

// Move makes n the number of the next choice, or goes to the end where no source is left
// before. It takes time in proportion to the number of sources.
func (c *Cursor) Move(n int64) {
	number := c.schedule.phaseOf(n)
	if number > 0 && c.schedule.phases[number].from == n {
		number-- // Next enters the phase
	}
	c.enter(number)
	p := &c.schedule.phases[number]
	c.jump(c.schedule.before(p, n-p.from-1))
	for c.n < n {
		if _, _, ok := c.Next(); !ok {
			return
		}
	}
}

// enter begins a phase.
func (c *Cursor) enter(number int) {
	p := &c.schedule.phases[number]
	c.phase, c.end = number, math.MaxInt64
	if next := number + 1; next < len(c.schedule.phases) {
		c.end = c.schedule.phases[next].from
	}
	for i := range c.sources {
		limit := c.schedule.limits[i] - p.begun[i]
		if math.IsInf(p.period[i], 1) {
			limit = 0 // also if it is due at once
		}
		c.sources[i] = source{limit: limit, begun: p.begun[i], first: p.due[i], period: p.period[i]}
	}
	c.jump(-1)
}

// jump goes to a time of the phase.
func (c *Cursor) jump(time float64) {
	p := &c.schedule.phases[c.phase]
	c.n, c.time = p.from, max(time, 0)
	for i := range c.sources {
		s := &c.sources[i]
		s.turns = 0
		if time >= 0 {
			s.turns = p.until(i, c.schedule.limits[i], time, true)
		}
		c.n += s.turns
		s.plan()
	}
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
}

// plan works out when the source is due next, as phase.at does.
func (s *source) plan() {
	if s.turns >= s.limit {
		s.due = math.Inf(1)
		return
	}
	s.due = (float64(s.turns) + s.first) * s.period
}

// sink moves a source down the heap to its place. Of two that are due at once the one of the
// lower number is first.
func (c *Cursor) sink(at int) {
	heap, sources := c.heap, c.sources
	source := heap[at]
	due := sources[source].due
	for {
		child := 2*at + 1
		if child >= len(heap) {
			break
		}
		number := heap[child]
		first := sources[number].due
		if child+1 < len(heap) {
			other := heap[child+1]
			if d := sources[other].due; d < first || d == first && other < number {
				child, number, first = child+1, other, d
			}
		}
		if first > due || first == due && source < number {
			break
		}
		heap[at] = number
		at = child
	}
	heap[at] = source
}
