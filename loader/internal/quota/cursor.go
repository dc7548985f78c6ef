package quota

import "math"

// Cursor goes through the choices of a schedule. It is for one goroutine.
type Cursor struct {
	schedule *Schedule
	phase    int
	n        int64     // choices made
	time     float64   // of the last, 0 at the beginning of a phase
	turns    []int64   // of each source, in this phase
	due      []float64 // when each source has its next turn
	heap     []int32   // of the sources, the first to be due on top
}

// Cursor begins at choice 0.
func (s *Schedule) Cursor() *Cursor {
	k := len(s.limits)
	c := &Cursor{schedule: s, turns: make([]int64, k), due: make([]float64, k), heap: make([]int32, k)}
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
	return c.schedule.phases[c.phase].begun[source] + c.turns[source]
}

// Next makes a choice: the source, and how many turns that has had before. It is false if
// no source is left in this phase.
func (c *Cursor) Next() (source int, turn int64, ok bool) {
	if next := c.phase + 1; next < len(c.schedule.phases) && c.n == c.schedule.phases[next].from {
		c.enter(next)
	}
	p := &c.schedule.phases[c.phase]
	source = int(c.heap[0])
	if math.IsInf(c.due[source], 1) {
		return 0, 0, false
	}
	turn = p.begun[source] + c.turns[source]
	c.time = c.due[source]
	c.n++
	c.turns[source]++
	c.plan(source)
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
func (c *Cursor) enter(phase int) {
	c.phase, c.n = phase, c.schedule.phases[phase].from
	c.jump(-1)
}

// jump goes to a time of the phase.
func (c *Cursor) jump(time float64) {
	p := &c.schedule.phases[c.phase]
	c.n, c.time = p.from, max(time, 0)
	for i := range c.turns {
		c.turns[i] = 0
		if time >= 0 {
			c.turns[i] = p.until(i, c.schedule.limits[i], time, true)
		}
		c.n += c.turns[i]
		c.plan(i)
	}
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
}

// plan works out when a source is due next.
func (c *Cursor) plan(source int) {
	p := &c.schedule.phases[c.phase]
	if c.turns[source] >= c.schedule.limits[source]-p.begun[source] {
		c.due[source] = math.Inf(1)
		return
	}
	c.due[source] = p.at(source, c.turns[source])
}

// sink moves a source down the heap to its place.
func (c *Cursor) sink(at int) {
	source := c.heap[at]
	for {
		child := 2*at + 1
		if child >= len(c.heap) {
			break
		}
		if child+1 < len(c.heap) && c.sooner(c.heap[child+1], c.heap[child]) {
			child++
		}
		if !c.sooner(c.heap[child], source) {
			break
		}
		c.heap[at] = c.heap[child]
		at = child
	}
	c.heap[at] = source
}

func (c *Cursor) sooner(a, b int32) bool {
	return c.due[a] < c.due[b] || c.due[a] == c.due[b] && a < b
}
