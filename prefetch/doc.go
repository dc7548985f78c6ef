// Package prefetch is the pipeline: it takes the batches that a loader's workers write
// into pinned memory, copies each to the device on a stream of its own while the compute
// stream works on the one before, and hands it over.
//
//	workers ──▶ pinned buffers ──copy stream──▶ device slots ──▶ compute stream
//	               refill after `copied`           overwrite after `consumed`
//
// # Use
//
//	pf, err := prefetch.New(compute, ld, prefetch.Options{})
//	defer pf.Close()
//	for batch, err := range pf.All(ctx) { // or Epochs, Batches, Pass; or Open for one Next at a time
//		if err != nil {
//			return err
//		}
//		model.Step(batch.Stream(), batch.Field("x").View)
//	}
//
// The body of a range owns its batch until it ends, in whatever way: break, return and
// panic release the batch too, and keep the position, so that the next range goes on with
// the next batch. The body submits its work to the batch's Stream and need not wait for it.
// Batches come in order, for any number of workers. An error comes at most once, last, with
// the zero Batch, and after all batches before it; the error of ctx is one of them.
//
// What was read ahead is kept for the next range when a body breaks. It is given up, and
// the producers are stopped and joined, when ctx ends and after an error.
//
// # One idea
//
// Everything that batches pass through on the device is a slot: memory that one stream
// writes and others read, with an event that says that it is filled and one for each
// reader that says that it is read. Two rules order its use, lap after lap:
//
//	overwrite after read   who writes waits for the last lap's reads
//	read after filled      who reads waits for filled
//
// Each stage of a pipeline is one more of them:
//
//	pinned ──copy──▶ raw ──transform──▶ device slots ──compute──▶ results ──download──▶ host
//
// A third rule is for the host: a pinned buffer is refilled after its copy. Package
// pinnedpool waits for that. The waits of the two rules are the device's: the host submits
// them and goes on. Nothing on this path synchronises a stream or a device, allocates or
// creates an event: New has done all of that.
//
// Events belong to what travels together. Small batches travel several to a copy while the
// producers are ahead, because a copy of 0.4 MB reaches two thirds of a PCIe 5 bus and one
// of 4 MiB nine tenths. They lie in one slot, and each is a window on it.
//
// # Words
//
//	slot     memory that one stream writes and others read (internal/slots)
//	lap      one use of a slot, from when it is written until it is written again
//	ring     the slots of a stage; the free ones wait for the uploader (internal/slots)
//	window   the part of a slot for one batch; a Batch is the lease of one (window.go, batch.go)
//	extent   how much of its layout a batch takes: rows, and lengths of ragged fields (extent.go)
//	feed     how batches' bytes reach a slot: today by copies from pinned buffers (feed.go)
//	stages   all that a batch goes through, and the order of the calls (stages.go)
//	run      what works ahead: producers and the uploader (run.go, uploader.go, lookahead.go)
//	Reader   who takes what is ahead, batch by batch (reader.go), and moves the Prefetcher's
//	         place in the data (place.go)
//
// # Reading this package
//
// A sample's way, from the worker that reads it to the compute stream, is in six files.
// They are best read in this order, and with this comment take twenty minutes:
//
//	feed.go                    Get lends a worker a pinned buffer; fill submits the copy out of it
//	uploader.go                gathers filled batches, takes a free slot, passes windows to the reader
//	stages.go                  the calls that bring batches into a slot
//	../internal/slots/slot.go  the two rules, each a Wait and a Record
//	../internal/slots/ring.go  which slot is free
//	reader.go                  Next: waits for a window, hands it over, moves the place
//
// docs/how-it-works.md says what is in the files beside them. A method whose name ends in
// Locked has a caller that holds the lock.
//
// # Invariants
//
// They are cited where they are upheld.
//
//	P1  A slot is written only after every Record of its last lap's reads has been issued,
//	    since a Wait binds to the newest Record issued.
//	P2  A read is waited for only if it was recorded in the slot's last lap: on its first
//	    lap there is nothing to wait for.
//	P3  The compute stream waits for a batch when that is handed over and not before, or
//	    it would wait for a later batch ahead of the step in between.
//	P4  A Batch is valid while its generation is the window's; nobody but the holder of
//	    that Batch releases the window.
//	P5  The place stands after the last batch delivered, never after the last one produced.
//
// Who may change the state of a buffer, of a window or of the pipeline, and when, is in
// package internal/life; internal/slotmodel goes through those machines in every order in
// which a pipeline can run, with every fault, and finds what breaks if an edge is missing.
//
// # Several compute streams
//
// With several compute streams a batch goes to the one with the fewest batches that it has
// not finished, and a slot is written again when its readers have done with it, whichever
// was used first: a step that takes long holds up its own stream alone. A step submits its
// work to Batch.Stream. No other stream waits for the batch's copy, nor the next copy for
// it, unless Batch.UsedOn says so: what it reads there is whatever the memory holds.
//
// # Checking a step
//
// With LEAT_ORDER=1 in the environment (LEAT_ORDER=1 go run .) package device/order
// follows every copy, kernel, Record and Wait, the pipeline's and yours. A step that
// submits to a stream which is neither the batch's own nor named by UsedOn gets an error
// from the call that touches the batch, which says what to do. A View that is kept beyond
// its batch is found too, when the next batch is copied over it. A Read that leaves a part
// of a field unwritten is found with -tags invariants; see package loader.
//
// # Life of a Prefetcher
//
// New allocates; nothing runs before Start or the first range. A run then works ahead until
// pinned buffers and slots are full, over the borders of epochs where the loader states
// their number. It goes on while nobody reads: what is ahead when a body breaks, or after
// Quiesce, is what the next range begins with, and meanwhile producers and uploader sleep.
// A context that ends, an error, a Seek to another place and Close stop and join it.
//
// Slots keep their addresses until Close. What has them in a graph, which the device would
// not free the memory of, is told before by BeforeFree; package prefetch/capture makes such
// graphs of a step.
//
// A Prefetcher's goroutines are the run's (the loader's dispatcher and workers, one
// uploader and, with several compute streams, one for each slot that waits until it is
// read), the pool's recycler from the first copy until Close, and a Map's stepper with a
// waiter for each of its download streams. A host consumer's Next that waits for a Transform
// has one more, for as long as it waits. After a Close that ran into its limit, and after a
// Transform or a step that did not return in time, a reaper waits for the device, or for
// that code, and frees the rest.
package prefetch
