package loader

import (
	"math"
	"sync/atomic"
)

// dear finds the rows of a batch that cost much more than others. It is the dispatcher's.
type dear struct {
	known   bool    // whether anything is known of this epoch's costs
	ahead   int     // for how many batches slots are asked for as early as there are any
	mean    float64 // the cost of a sample, of the batches so far
	index   int     // of the sample that the user is asked about, for a report
	indices []int   // of a batch's samples,
	costs   []float64
}

// aheadFor is for how many batches the dispatcher looks for others behind one with dear rows.
const aheadFor = 64

// rank puts the rows of b that cost much more than others first in its turns, and returns how
// many they are. If the user's Cost does not return, b has failed and its rows do not come.
func (d *dispatcher) rank(b *batch, rows int) (first int, ok bool) {
	workers := int(d.run.lineup.allowed.Load())
	if !d.dear.known || workers == 1 { // one reads all the same, sooner or later
		return 0, true
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		b.fail(d.run, 0, &Error{
			Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: d.dear.index, Position: b.filled.Position,
			Shard: -1, Stage: StageCost, Err: caught(recover()),
		})
		d.run.lineup.hand(b, 0, true)
		d.handed(b, 0)
		first, ok = 0, false
	}()
	first = d.dear.rank(d.run.loader.costs, b, rows, workers)
	if d.dear.ahead--; first > 0 {
		d.dear.ahead = aheadFor
	}
	returned = true
	return first, true
}

// rank is dispatcher.rank without what can go wrong.
func (d *dear) rank(c *costs, b *batch, rows, workers int) (first int) {
	if rows == 0 {
		return 0
	}
	if cap(d.indices) < rows {
		d.indices, d.costs = make([]int, rows), make([]float64, rows)
	}
	indices, costs := d.indices[:rows], d.costs[:rows]
	b.order.Fill(indices, b.filled.Position)
	sum, most := 0.0, 0.0
	for row, index := range indices {
		d.index = index
		costs[row] = c.of(b.filled.Epoch, index)
		sum += costs[row]
		most = max(most, costs[row])
	}
	if d.mean == 0 {
		d.mean = sum / float64(rows)
	}
	d.mean += (sum/float64(rows) - d.mean) / 8
	if least := dearly * d.mean; most >= least && most > 0 {
		return d.sort(b, costs, least, workers)
	}
	return 0
}

// sort sorts the rows that cost least or more to the beginning, the dearest first. So many
// rows as workers read in the time that one takes are its lead.
func (d *dear) sort(b *batch, costs []float64, least float64, workers int) (first int) {
	if cap(b.turns) < len(costs) {
		b.turns, b.leads = make([]int32, len(costs)), make([]atomic.Int32, len(costs))
	}
	b.turns, b.leads = b.turns[:len(costs)], b.leads[:len(costs)]
	for row, cost := range costs {
		if cost < least {
			continue
		}
		at := first // there are few
		for ; at > 0 && costs[b.turns[at-1]] < cost; at-- {
			b.turns[at] = b.turns[at-1]
		}
		b.turns[at] = int32(row)
		first++
	}
	at := first
	for row, cost := range costs {
		if cost < least {
			b.turns[at] = int32(row)
			at++
		}
	}
	for i, row := range b.turns[:first] {
		b.leads[i].Store(int32(min(costs[row]/d.mean*float64(workers), math.MaxInt32)))
	}
	return first
}
