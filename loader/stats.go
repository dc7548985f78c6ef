package loader

import "time"

// Stats says what a Run has done and who waited for whom. Each number by itself
// is exact; together they are taken one after the other while the run goes on. A
// wait counts when it is over.
type Stats struct {
	// Batches and Samples are those delivered, padding not counted.
	Batches, Samples int64
	// Substituted is how many of the samples are substitutes.
	Substituted int64
	// WaitSlot is how long the run waited for memory: large when the consumer is
	// the slower side.
	WaitSlot time.Duration
	// WaitBatch is how long Next waited for a batch: large when the workers are.
	WaitBatch time.Duration
	// WaitOrder is how long at least one batch was filled and could not be delivered,
	// because one before it was not: large when single samples are slow. It counts when
	// Next comes to the batch that held up the others.
	WaitOrder time.Duration
	// Busy is how long each worker spent on samples, reading and waiting in user
	// code alike.
	Busy []time.Duration
}

// Stats may be called at any time, by any goroutine, also after Close.
func (r *Run) Stats() Stats {
	s := Stats{
		Batches: r.batches.Load(), Samples: r.samples.Load(), Substituted: r.substituted.Load(),
		WaitSlot: time.Duration(r.waitSlot.Load()), WaitBatch: time.Duration(r.waitBatch.Load()),
		WaitOrder: time.Duration(r.held.Load()),
	}
	for _, w := range r.workers {
		s.Busy = append(s.Busy, time.Duration(w.busy.Load()))
	}
	return s
}
