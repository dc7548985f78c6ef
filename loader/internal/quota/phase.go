package quota

import (
	"math"
	"sort"
)

// phase is the choices between two changes of the shares.
type phase struct {
	from   int64     // the choice that it begins with
	shares []float64 // they add up to 1
	period []float64 // the time between two turns, infinite without a share
	due    []float64 // how many turns before its first one each source is at the beginning
	begun  []int64   // how many turns each source had before
}

// set sets the shares.
func (p *phase) set(shares []float64) {
	p.shares, p.period = shares, make([]float64, len(shares))
	for i, share := range shares {
		p.period[i] = 1 / share
	}
}

// at is when a source is due for a turn, counted from the phase's beginning.
func (p *phase) at(source int, turn int64) float64 {
	if math.IsInf(p.period[source], 1) {
		return p.period[source] // also if it is due at once
	}
	return (float64(turn) + p.due[source]) * p.period[source]
}

// until is how many turns a source has had at a time, that time included, or not.
func (p *phase) until(source int, limit int64, time float64, included bool) int64 {
	limit -= p.begun[source]
	share := p.shares[source]
	if limit <= 0 || share == 0 {
		return 0
	}
	is := func(turn int64) bool {
		at := p.at(source, turn)
		return at < time || included && at == time
	}
	turns := int64(0)
	if estimate := share*time - p.due[source] + 1; estimate >= float64(limit) {
		turns = limit
	} else if estimate > 0 {
		turns = int64(estimate)
	}
	for turns < limit && is(turns) {
		turns++
	}
	for turns > 0 && !is(turns-1) {
		turns--
	}
	return turns
}

// total is how many choices of the phase are made at a time.
func (s *Schedule) total(p *phase, time float64) (n int64) {
	for i := range p.shares {
		n += min(p.until(i, s.limits[i], time, true), Most)
		if n >= Most {
			return Most
		}
	}
	return n
}

// before is a time at which at most n choices of the phase are made, and hardly fewer. It is
// -1 if none are.
func (s *Schedule) before(p *phase, n int64) float64 {
	// Without limits the time is the number of choices, give or take one a source, and
	// the rounding of large numbers.
	off := int64(len(p.shares)) + n>>50
	low, high := float64(n-off), float64(n+off)
	if low <= 0 {
		return -1
	}
	near := off/8 + 4                                       // what is left is gone through choice by choice
	for s.total(p, high) <= n && high < math.MaxFloat64/2 { // where sources are left out time passes faster
		low, high = high, 2*high
	}
	for n-s.total(p, low) > near {
		middle := low + (high-low)/2
		if middle == low || middle == high {
			break
		}
		if s.total(p, middle) <= n {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// phaseOf is the number of the phase that a choice belongs to.
func (s *Schedule) phaseOf(n int64) int {
	return sort.Search(len(s.phases), func(i int) bool { return s.phases[i].from > n }) - 1
}

// Position is the number of the choice by which a source has a turn, both from 0. It is
// false if it never has, or not among the first Most choices.
func (s *Schedule) Position(source int, turn int64) (n int64, ok bool) {
	if turn >= s.limits[source] {
		return 0, false
	}
	p := &s.phases[sort.Search(len(s.phases), func(i int) bool { return s.phases[i].begun[source] > turn })-1]
	time := p.at(source, turn-p.begun[source])
	if math.IsInf(time, 1) {
		return 0, false
	}
	n = p.from
	for i := range p.shares {
		if i == source {
			n += turn - p.begun[source]
		} else {
			n += p.until(i, s.limits[i], time, i < source)
		}
		if n < 0 || n >= Most {
			return 0, false
		}
	}
	return n, true
}

// Len is how many choices there are before no source is left in the phase that has been
// reached.
func (s *Schedule) Len() int64 {
	if s.stuck {
		return s.end
	}
	p := &s.phases[len(s.phases)-1]
	n := p.from
	for i, share := range p.shares {
		if share > 0 {
			n += min(s.limits[i]-p.begun[i], Most-n)
		}
	}
	return n
}
