// Package slotmodel goes through everything that can happen in a pipeline of package
// prefetch, in every order in which it can happen, and reports the first order that breaks
// a promise, step by step. What a buffer, a batch and a pipeline may do next it asks the
// machines of package life, which are those that prefetch and pinnedpool ask: a machine
// that allows too much, or too little, is found here.
//
// # Slots
//
// Explore follows batches. The pipeline has a Shape, and at most one Fault happens, at any
// moment at which it can. Each line is a step, taken whenever it is possible:
//
//	producers  Get a buffer for the next batch; fill it, in any order; or fail, or hang
//	uploader   take the next batch in order, and perhaps the one behind it; take a free
//	           slot, with several compute streams one that is read; copy.Wait(reads),
//	           copy.CopyH2D, in one call where the buffers lie together, copy.Record(copied)
//	           of the last buffer, copy.Record(filled), pass the batches on
//	recycler   free the oldest buffer in flight when the event of its copy is complete
//	consumer   Next: compute.Wait(filled) and work, on a stream of its choice, and the same
//	           on the stream of UsedOn; Release, in any order: Record of the UsedOn read at
//	           each, of compute's reads at the last of a slot, then the slot is free
//	streams    do their oldest operation
//	a run's end  discard what was uploaded, put back what was filled, quarantine what a
//	           producer that hangs may write to; take back what is in doubt when the streams
//	           have come to rest; begin another run behind the last batch delivered
//	a producer that hung  writes, and comes back: Readmit, Put, also while another run
//	           is under way
//
// Events are CUDA's: a Wait binds to the newest Record issued at that time, and if there
// is none to nothing.
//
// It must hold that no buffer is written and no slot overwritten before it is read, that
// every batch is delivered once, in order and with its own contents, also where a run
// failed and another began, that with several compute streams no copy waits for compute,
// that every event is possible where it comes, that somebody can always go on until all is
// done, and that then all buffers and slots are back and the user was told of the fault.
//
// # Lives
//
// ExplorePipeline follows the life of a Prefetcher: a user who opens Readers and Maps,
// calls Next and leaves at any time; a Map's stepper, whose step may hang; leases that end
// at any time; Close, and perhaps one Quiesce, Seek or Start, from other goroutines; a run
// that may hang in a Transform; and the reapers of what Close and Maps leave. Their
// programs are those of prefetch, with the lock p.turn, the channel p.closed and the
// pointer p.run as the code has them, and every event of life.Pipeline where the code
// issues it.
//
// It must hold that one reads at a time, that ErrBusy and ErrClosed come where there is a
// reason and only there, that nobody begins to read and no batch is lent behind Close, that
// nothing is freed while a run, a lease, a Map or a reaper uses it, that what is freed last
// is freed once, that no event is ErrWrong, and that at the end all is freed.
//
// # Mistakes
//
// The tests leave out each edge and each precaution (Mistake, Slip), and change the
// machines: each time there must be an order that breaks a promise. And the machines of
// buffers and batches allow exactly the moves that a pipeline makes.
//
// # What is one step
//
// Steps that nobody can tell apart from one are one: the calls of an upload, since what
// the streams and the recycler do in between they can do after it; an operation and the
// Records and Waits behind it that take no time; and in a program whatever others could as
// well do before or after it. Work and copies happen at one moment: where two that touch
// the same memory are not ordered, they come in either order.
//
// # What is left out
//
// Of slots: transforms and a Map's results, which are slots too; a host consumer; more than
// two batches in a copy, two compute streams, one stream of UsedOn and one fault; short
// batches; epochs; pageable memory; the order in which a stream is chosen (any is tried).
// Of lives: what the device does, except that Close may run into its limit with a copy or
// with a slot; a device that fails, with which nothing is freed; errors of Release and what
// is told later (notes); Reader.Close from another goroutine; two helpers at once; WaitNext.
// Of both: time, and memory below the level of a step, which is the race detector's.
//
// The shapes of the tests are small: about two million states in ten seconds. make soak
// has larger ones.
package slotmodel
