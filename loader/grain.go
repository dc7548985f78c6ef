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
		even = max(min(even, int(costUnit*longest)/int(cost)), int(costUnit*shortest)/int(cost))
	}
	return min(max(even, 1), maxChunk)
}

// measure takes a chunk's time into the cost of a sample. Workers that measure at
// once may lose one another's, which does no harm.
func (r *Run) measure(took time.Duration, rows int) {
	cost, old := costUnit*int64(took)/int64(rows), r.cost.Load()
	if old > 0 {
		cost = old + (cost-old)/4
	}
	r.cost.Store(cost)
}
