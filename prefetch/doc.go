// Package prefetch is the pipeline: it takes the batches that a loader's workers
// write into pinned host slots, copies each to the device on a stream of its own
// while the compute stream works on the one before, and hands it over.
//
//	workers ──▶ host slots (pinned) ──copy stream──▶ device slots ──▶ compute stream
//	               refill after `copied`               overwrite after `consumed`
//
// # The three edges
//
// All of the ordering is in protocol.go, on one screen:
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
// # Life of a Prefetcher
//
// New allocates; nothing runs before the first Next. A range of Batches takes what
// is left of the current epoch. When it ends by itself and the loader has a stated
// number of Epochs with more to come, the producers go on into the next epoch, so
// that there is no gap at the border; break, return, panic, an error and a
// cancelled context stop and join them. Close frees everything that is not in use
// and says what is.
//
// A Prefetcher's goroutines are: the loader's run (dispatcher and workers) and one
// uploader, from the first Next until the epochs end or the range is left; the
// pool's recycler, while copies are in flight. After a Close that ran into its
// limit a reaper waits for the device and frees the rest.
package prefetch
