package loader

import (
	"sync"
	"time"
)

// Stats says what a Run has done and who waited for whom. Each number by itself
// is exact; together they are taken one after the other while the run goes on. A
// wait counts when it is over.
type Stats struct {
	// Batches and Samples are those delivered, padding not counted.
	Batches, Samples int64
	// Substituted is how many of the samples are substitutes.
	Substituted int64
	// Skipped is how many samples a Stream's shards have left out so far, also behind what is
	// delivered, and FirstSkipped the first 16 of them.
	Skipped      int64
	FirstSkipped []Skipped
	// WaitSlot is how long the run waited for memory when its workers had, or were
	// about to have, no rows left to begin: large when the consumer is the slower side.
	WaitSlot time.Duration
	// WaitBatch is how long Next waited for a batch: large when the workers are.
	WaitBatch time.Duration
	// WaitOrder is how long at least one batch was filled and could not be delivered,
	// because one before it was not filled: large when single samples are slow. It is added
	// when Next comes to the batch that held up the others.
	WaitOrder time.Duration
	// Busy is how long each worker spent in user code for samples, reading or waiting: those
	// that there ever were.
	Busy []time.Duration
	// Workers is how many workers there may be at this moment, and Decisions the last KeptDecisions
	// that led there, under Workers: Auto.
	Workers   int
	Decisions []Decision
	// Reading is how long the goroutine of each of a Stream's shards spent in its reader, or
	// waiting there, and with Options.Skips in encode: the rest of the time it had read far
	// enough ahead.
	Reading []time.Duration
	// Slowest is the sample that took longest to read.
	Slowest Slowest
}

// Slowest is the sample that took longest, including the time for which it waited in user
// code. Samples of a few microseconds are timed several at a time, because reading the
// clock for each would cost as much. Then Slowest is one of several neighbours, and the
// others are assumed to have cost what those before them did.
type Slowest struct {
	// Epoch and Position are its place, or that of the first of the neighbours.
	Epoch    int
	Position int64
	// Sample is the dataset's index at that place, of an Iterable the position.
	Sample int
	// Neighbours is the number of samples from there on that were timed together: 1 if
	// it is this one, 0 if none was read yet.
	Neighbours int
	// Took is how long it took.
	Took time.Duration
}

// slowest is the Slowest of a worker.
type slowest struct {
	took time.Duration // the worker's own copy

	mu   sync.Mutex
	what Slowest
}

// note takes a claim's time into account, where samples before had a cost, in 1/16 ns.
func (s *slowest) note(b *batch, rows span, took time.Duration, cost int64) {
	n := rows.hi - rows.lo
	took = max(took-time.Duration(int64(n-1)*cost/costUnit), took/time.Duration(max(n, 1)))
	if took <= s.took || n == 0 {
		return
	}
	s.took = took
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = Slowest{
		Epoch: b.filled.Epoch, Position: b.at(rows.lo).position, Sample: b.sample(rows.lo),
		Neighbours: n, Took: took,
	}
}

// get is the slowest so far.
func (s *slowest) get() Slowest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.what
}

// Stats may be called at any time, by any goroutine, also after Close.
func (r *Run) Stats() Stats {
	s := Stats{
		Batches: r.batches.Load(), Samples: r.samples.Load(), Substituted: r.substituted.Load(),
		WaitSlot: time.Duration(r.dispatcher.waited.Load()), WaitBatch: time.Duration(r.waitBatch.Load()),
		WaitOrder: time.Duration(r.held.Load()),
		Workers:   int(r.lineup.allowed.Load()), Decisions: r.tuning.get(),
	}
	s.Skipped, s.FirstSkipped = r.skips.get()
	if m := r.dispatcher.merger; m != nil {
		s.Reading = m.reading()
	}
	for _, w := range r.crew.all() {
		s.Busy = append(s.Busy, time.Duration(w.busy.Load()))
		if slow := w.slowest.get(); slow.Took > s.Slowest.Took {
			s.Slowest = slow
		}
	}
	return s
}
