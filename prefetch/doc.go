// Package prefetch is the pipeline: it takes the batches that a loader's workers
// write into pinned host slots, copies each to the device on a stream of its own
// while the compute stream works on the one before, and hands it over.
//
//	workers ──▶ host slots (pinned) ──copy stream──▶ device slots ──▶ compute stream
//	               refill after `copied`               overwrite after `consumed`
//
// # The three edges
//
// Their ordering is in protocol.go, on one screen; stages.go has the edges of the
// stages that not every pipeline has:
//
//	(a) copied → compute   the compute stream waits for the slot's ready event
//	(b) consumed → copy    the copy stream waits for the slot's consumed events
//	(c) copied → refill    the recycler waits for the host slot's copied event
//
// (a) and (b) are waits on the device: the host submits them and goes on. (c) is
// the only wait of the host, and package pinnedpool's recycler does it. Nothing on
// this path synchronises a stream or a device, allocates or creates an event: New
// has done all of that.
//
// # More stages
//
// A Transform stands between upload and delivery, on a stream of its own; Map brings
// results back. Each stage runs on its own engine, and events alone order them:
//
//	host slots ──copy──▶ raw ──transform──▶ device slots ──compute──▶ results ──download──▶ host
//	                      ▲ (e)              ▲ (b)                     ▲ the host has read
//	                      └─ transform read  └─ compute done           └─ and given back
//
// On a modelled card 10 ms in, 30 ms of compute and 10 ms out take 50·N ms one after
// the other and 30·N+20 ms here, and with a transform of 20 ms on an engine of its
// own 30·N+40: go test -run 'ResultsComeBack|FourStages' ./prefetch.
//
// A step submits its work to Batch.Stream. No other stream waits for the batch's copy,
// nor the next copy for it, unless Batch.UsedOn says so: what it reads there is
// whatever the memory holds.
//
// Several compute streams take batches side by side where there are engines for
// them: ten batches of 30 ms on two take 180 ms instead of 320 (the same test).
//
// Small batches travel several to a copy, in a carrier, while the producers are
// ahead: a copy of 0.4 MB reaches two thirds of a PCIe 5 bus, one of 4 MiB nine
// tenths. go run ./cmd/leat bench -only samples shows what that brings on a GPU.
//
// # Invariants
//
// They are cited where they are upheld.
//
//	P1  A device slot goes to the uploader only after every Record of its consumed
//	    events has been issued, since a Wait binds to the newest Record issued.
//	P2  A slot's consumed events are waited for only if they were recorded in the
//	    slot's last lap: on its first lap there is nothing to wait for.
//	P3  The compute stream waits for ready when the batch is handed over and not
//	    before, or it would wait for a later batch ahead of the step in between.
//	P4  A Batch is valid while its generation is the slot's; nobody but the holder
//	    of that Batch releases the slot.
//	P5  The cursor stands after the last batch delivered, never after the last one
//	    produced.
//
// Package internal/slotmodel goes through every order in which the slots' life can
// happen, with every fault, and finds the one that breaks if an edge is missing.
//
// # Checking a step
//
// With LEAT_ORDER=1 in the environment (LEAT_ORDER=1 go run .) package device/order
// follows every copy, kernel, Record and Wait, the pipeline's and yours. A step that
// submits to a stream which is neither the batch's own nor named by UsedOn gets an error
// from the call that touches the batch. The error names the slot, the batch and the field,
// both places in the code, and what to do. The bytes need not be wrong for that. A View
// that is kept beyond its batch is found too, when the next batch is copied over it. This
// package's tests run with LEAT_ORDER=1, and where a test leaves out an edge of protocol.go
// or stages.go the report names that edge.
//
// LEAT_ORDER looks at which memory work uses, and not at what the work writes: a Read that
// leaves a part of a field unwritten is found with -tags invariants; see package loader.
//
// # Life of a Prefetcher
//
// New allocates; nothing runs before the first Open, which a range begins with. A
// range of Batches takes what is left of the current epoch. When it ends by itself
// and the loader has a stated number of Epochs with more to come, the producers go on
// into the next epoch, so that there is no gap at the border; break, return, panic,
// an error, a cancelled context and Quiesce stop and join them. Close frees everything
// that is not in use and says what is.
//
// A Prefetcher's goroutines are: the loader's run (dispatcher and workers) and one
// uploader, from the first Open until the epochs end or the range is left; the
// pool's recycler, from then until the last copy in flight ends; a Map's stepper and
// a waiter for each of its download streams, until its loop is left. After a Close that
// ran into its limit, and after a Transform or a step that did not return in time, a
// reaper waits for the device, or for that code, and frees the rest.
package prefetch
