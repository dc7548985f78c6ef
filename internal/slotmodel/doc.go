// Package slotmodel is the slots' life in package prefetch, small enough to be looked
// at in every order in which it can happen. Explore goes through all interleavings of
// its actors and reports the first that breaks a promise, step by step.
//
// # What is modelled
//
// Three host slots, two device slots and four batches, which is a second lap of every
// device slot and of a host slot; and at most one fault. Each line is one step, taken
// whenever it can be:
//
//	producers  open a batch in a free host slot; end it, in any order
//	uploader   for each batch in order: take a device slot, copy.Wait(consumed),
//	           copy.CopyH2D, copy.Record(copied), copy.Record(ready), give the host
//	           slot to the recycler, deliver
//	recycler   Synchronize(copied) of the oldest slot in flight; free it
//	consumer   compute.Wait(ready), work, compute.Record(consumed), release
//	streams    begin and end their oldest operation
//
// Events are CUDA's: a Wait or a Synchronize binds to the newest Record issued at that
// time, and if there is none to nothing. A copy poisons its destination when it begins
// and reads its source when it ends; work reads its slot at both.
//
// # What must hold
//
// No slot is written while something reads it, every batch is delivered once, in order
// and with its own contents, somebody can always go on until all is done, and then all
// slots are back and the user was told of the fault.
//
// # What is left out
//
// Several batches in a copy, transforms, results, several compute streams, leases
// returned in another order, epochs, the end of the device itself, and time. A step
// here is several instructions there: what lies within is the race detector's to find.
//
// The steps follow stages.go, uploader.go and reader.go of package prefetch, and
// pinnedpool's recycler: a change of the order of calls there is a change here.
package slotmodel
