package loader

import (
	"math"
	"math/bits"
)

// plan is the steps of every epoch. Where a step begins decides all about it, so what
// comes behind a place is the same whoever got there, and how.
type plan struct {
	split // with the largest batch size
	// sizes are the batch sizes by the number of samples before a step, ascending, nil if
	// there is one size only.
	sizes []SizeFrom
	// jumped is what no step begins in, in order and apart from each other.
	jumped []Span
	// fixed is how many steps an epoch of a Stream has, 0 if that is not stated. Then an epoch
	// has as many samples as they take.
	fixed int64
}

// step returns where the first step from a place on begins, and the split that is in force
// there. ok is false if no step is left in the epoch.
func (p *plan) step(at Cursor) (s split, from int64, ok bool) {
	s, from = p.split, p.jump(at)
	s.batch = p.size(at.Epoch, from)
	return s, from, s.steps(from) > 0
}

// left is the number of steps from a place to the end of its epoch, the same on every rank.
func (p *plan) left(at Cursor) (steps int64) {
	_, steps = p.advance(at, math.MaxInt64)
	return steps
}

// advance is the place so many steps behind another one in the same epoch, and how many of
// them there are.
func (p *plan) advance(at Cursor, most int64) (to Cursor, steps int64) {
	for steps < most {
		s, from, ok := p.step(at)
		if !ok {
			break
		}
		// Until then all steps are of one size, and none is jumped over.
		until := min(p.resized(at.Epoch, from), p.jumps(at.Epoch, from), p.samples)
		n := min((until-from-1)/s.global()+1, s.steps(from), most-steps)
		steps += n
		at.Position = min(from+n*s.global(), p.samples)
	}
	return at, steps
}

// alike reports whether all epochs from one on have the same steps.
func (p *plan) alike(epoch int) bool {
	n, spans := len(p.sizes), len(p.jumped)
	return (n == 0 || p.sizes[n-1].Sample <= p.before(epoch)) && (spans == 0 || p.jumped[spans-1].To.Epoch < epoch)
}

// number is that of the step which begins at a place, counted from 0 in its epoch. Steps
// that are jumped over count, so that all others keep their numbers.
func (p *plan) number(at Cursor) int {
	n, from := int64(0), int64(0)
	for {
		global, resized := p.size(at.Epoch, from)*p.ranks, p.resized(at.Epoch, from)
		to := p.jump(Cursor{Epoch: at.Epoch, Position: from})
		jumped := from < to && to <= at.Position
		if jumped && to <= resized {
			n, from = n+(to-from)/global, to // a step begins there, on the grid or not
			continue
		}
		fit := (at.Position - from) / global
		if fit == 0 {
			return int(n)
		}
		// Until then all steps are of one size, and none is jumped over, or all are.
		fit = min(fit, (min(resized, p.jumps(at.Epoch, from))-from-1)/global+1)
		n, from = n+fit, from+fit*global
		if jumped {
			from = min(from, to)
		}
	}
}

// size is the number of rows of one rank's batch in a step that begins at a position.
func (p *plan) size(epoch int, position int64) int64 {
	size, samples := p.batch, p.before(epoch)
	if samples += position; samples < 0 {
		samples = math.MaxInt64
	}
	for _, s := range p.sizes {
		if s.Sample > samples {
			break
		}
		size = int64(s.BatchSize)
	}
	return size
}

// resized is the first position behind another one at which the batch size changes.
func (p *plan) resized(epoch int, position int64) int64 {
	before := p.before(epoch)
	for _, s := range p.sizes {
		if at := s.Sample - before; at > position {
			return at
		}
	}
	return math.MaxInt64
}

// before is the number of samples in the epochs before one, or the largest number if that
// is too small.
func (p *plan) before(epoch int) int64 {
	if p.fixed > 0 {
		return p.taken(epoch)
	}
	high, low := bits.Mul64(uint64(epoch), uint64(p.samples))
	if high != 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// jump is the first position from a place on that a step may begin at.
func (p *plan) jump(at Cursor) int64 {
	for _, s := range p.jumped {
		switch {
		case s.From.compare(at) > 0 || s.To.compare(at) <= 0:
		case s.To.Epoch > at.Epoch:
			return p.samples
		default:
			return s.To.Position
		}
	}
	return at.Position
}

// jumps is the first position behind another one from which on no step may begin.
func (p *plan) jumps(epoch int, position int64) int64 {
	for _, s := range p.jumped {
		if s.From.Epoch == epoch && s.From.Position > position {
			return s.From.Position
		}
	}
	return math.MaxInt64
}
