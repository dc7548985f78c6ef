// Package life says what a pipeline's buffers, batches and the pipeline itself may do next:
// three small machines without locks, memory or time.
//
//	Buffer    a pinned buffer's round: free, held, in flight, and what becomes of it when
//	          its copy's end is unknown, or when somebody may still write to it
//	Batch     the place of a batch in its lap: empty, filling, ready, leased
//	Pipeline  a Prefetcher: how far its end has come, who reads it, what works ahead, and
//	          how many use what is freed last
//
// A machine is a function, Next: the state behind an event, or that the event can't come
// in this state. Package pinnedpool changes the states of its buffers, and prefetch those
// of its windows and its lifecycle, by these functions and in no other way; an event that
// can't come is a mistake of theirs, with which they panic. Where a user's call comes at the
// wrong time Pipeline.Next says ErrBusy or ErrClosed, and the user gets that.
//
// A History is what became of the place of a batch lately, for reports of mistakes.
//
// What is not here: which memory, stream or goroutine a state belongs to, and the order of
// device operations. internal/slotmodel explores these functions with all that in every
// order of events.
package life
