package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// Reads is what the workers did, all together or one of them.
type Reads struct {
	// Samples were read, in Runs of neighbours, which took Busy in all.
	Samples, Runs int64
	Busy          time.Duration
	// Sample is how long samples took, each as long as others of its run.
	Sample Histogram
	// Slowest are those that took longest, the slowest first: up to 8, of all time, also
	// where two snapshots were subtracted.
	Slowest []Slow
}

// Slow is a sample that took long, or the first of several that were timed together.
type Slow struct {
	// Sample is its index, Epoch and Position its place in the order.
	Sample   int
	Epoch    int
	Position int64
	// Neighbours is how many were timed together, and Took how long they took.
	Neighbours int
	Took       time.Duration
}

// add adds a run.
func (r *Reads) add(one *journal.Read) {
	r.Runs++
	r.Samples += int64(one.Samples)
	r.Busy += one.Took
	if one.Samples == 0 {
		return
	}
	r.Sample.Add(one.Took/time.Duration(one.Samples), int64(one.Samples))
	if len(r.Slowest) == mostSlow && one.Took <= r.Slowest[mostSlow-1].Took {
		return
	}
	if r.Slowest == nil {
		r.Slowest = make([]Slow, 0, mostSlow+1)
	}
	r.keep(Slow{Sample: one.Sample, Epoch: one.Epoch, Position: one.Position, Neighbours: one.Samples, Took: one.Took})
}

// keep keeps a slow sample where it belongs, if there is room.
func (r *Reads) keep(s Slow) {
	at, _ := slices.BinarySearchFunc(r.Slowest, s, func(a, b Slow) int { return cmp.Compare(b.Took, a.Took) })
	r.Slowest = slices.Insert(r.Slowest, at, s)
	r.Slowest = r.Slowest[:min(len(r.Slowest), mostSlow)]
}

// plus is what two workers did.
func (r Reads) plus(s *Reads) Reads {
	r.Samples += s.Samples
	r.Runs += s.Runs
	r.Busy += s.Busy
	for i := range r.Sample.counts {
		r.Sample.counts[i] += s.Sample.counts[i]
		r.Sample.sums[i] += s.Sample.sums[i]
	}
	r.Slowest = slices.Clone(r.Slowest)
	for _, slow := range s.Slowest {
		r.keep(slow)
	}
	return r
}

// Sub is what r has more than before, but for Slowest.
func (r Reads) Sub(before *Reads) Reads {
	r.Samples -= before.Samples
	r.Runs -= before.Runs
	r.Busy -= before.Busy
	r.Sample = r.Sample.Sub(before.Sample)
	return r
}

// reads is what all workers did.
func (r *Recorder) reads() (all Reads) {
	for i := range r.workers {
		w := &r.workers[i]
		w.mu.Lock()
		if w.figures.Runs > 0 {
			all = all.plus(&w.figures)
		}
		w.mu.Unlock()
	}
	return all
}
