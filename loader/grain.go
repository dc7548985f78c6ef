package loader

import "time"

// A chunk is sized to keep a worker for longest, so that it yields often enough
// for others to run, and never for less than shortest, below which handing it
// over costs as much as the work.
const (
	longest  = 100 * time.Microsecond
	shortest = 50 * time.Microsecond
)

// costUnit is the resolution of Run.cost, in fractions of a nanosecond.
const costUnit = 16

// grain is the number of rows in a chunk of a batch of so many rows: by time once
// a sample's cost is known, and evenly over the workers before, so that all share
// the first batch.
func (r *Run) grain(rows int) int {
	workers := len(r.workers)
	even := (rows + workers - 1) / workers
	if cost := r.cost.Load(); cost > 0 {
		most, least := costUnit*int64(longest)/cost, costUnit*int64(shortest)/cost
		even = int(min(max(min(int64(even), most), least), maxChunk))
	}
	return min(max(even, 1), maxChunk)
}

// patience is the number of samples between two looks at the context, each of which
// costs as much as the copy of a few hundred bytes: 1 but for samples that are sure to
// be over at once.
func (r *Run) patience() int {
	if cost := r.cost.Load(); cost > 0 && cost < costUnit*250 {
		return 8
	}
	return 1
}

// tally is what a worker has not measured yet. Where the clock is coarse (Windows
// moves it on every 0.5 to 15 ms) most chunks take no time, and one as much as a
// tick: only all of them from one tick to the next tell what a sample costs.
type tally struct {
	took time.Duration
	rows int
}

// measure takes a chunk's time into the cost of a sample. Workers that measure at
// once may lose one another's, which does no harm.
func (r *Run) measure(t *tally, took time.Duration, rows int) {
	t.took += took
	t.rows += rows
	if t.took <= 0 {
		return
	}
	cost, old := max(costUnit*int64(t.took)/int64(t.rows), 1), r.cost.Load()
	*t = tally{}
	if old > 0 {
		cost = old + (cost-old)/4
	}
	r.cost.Store(cost)
}
