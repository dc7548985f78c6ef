package loader

import "time"

// A worker claims as many rows as it reads in claimTime, by what the samples before took:
// few enough that it yields often, and that workers who share a batch are done with it
// together, and so many that claiming them costs next to nothing beside reading them.
const claimTime = 50 * time.Microsecond

// costUnit is the resolution of pace.cost, in fractions of a nanosecond.
const costUnit = 16

// pace is how fast a worker reads. Each measures for itself, and only its last claim
// counts: what samples cost now is what matters.
type pace struct {
	rows int   // to claim next
	aim  int   // what rows rises to while samples cost the same
	cost int64 // of a sample, in 1/16 ns; 0 before the first

	// What is not measured yet. Where the clock is coarse (Windows moves it on every
	// 0.5 to 15 ms) most claims take no time, and one as much as a tick: only all of
	// them from one tick to the next tell what a sample costs.
	took  time.Duration
	timed int
}

// measure takes a claim's time into account. The number of rows falls at once, and at
// most doubles: one that is too low costs little.
func (p *pace) measure(took time.Duration, rows int) {
	p.took += took
	p.timed += rows
	if p.took <= 0 {
		return
	}
	p.cost = max(costUnit*int64(p.took)/int64(p.timed), 1)
	p.aim = int(min(max(costUnit*int64(claimTime)/p.cost, 1), maxClaim))
	p.rows = min(p.aim, 2*max(p.rows, p.timed))
	p.took, p.timed = 0, 0
}

// patience is the number of samples between two looks at the context and the clock, each
// of which costs as much as the copy of a few hundred bytes: 1, or more for samples that
// are sure to be over at once.
func (p *pace) patience() int {
	if p.cost > 0 && p.cost < costUnit*250 {
		return 8
	}
	return 1
}
