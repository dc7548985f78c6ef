// Package pinnedpool keeps pinned host memory: buffers of one exact size under a byte
// budget, recycled by events.
//
// All of a pool's memory is allocated by New and none afterwards. A buffer goes round in
// one of two ways; package internal/life has the whole machine:
//
//	free ─Get─▶ held ─PutAfter─▶ in flight ─copied completes─▶ free
//	free ─Get─▶ held ─Put─▶ free
//
// The invariants, cited where they are upheld:
//
//	I1  A buffer's memory is written only by whoever holds it.
//	I2  A buffer in flight is free again only when a Record of a Copied event, made
//	    behind the last copy that reads it, is complete.
//	I3  A quarantined buffer, one that somebody may still write to, is not free and
//	    its memory is not given back until it is known that nobody writes to it any
//	    more: Readmit.
//	I4  The pool's bytes are at most its budget, and never change after New.
//
// Builds with the tag invariants check I1 from outside: free memory is poison, and
// a write to a buffer that is free or in flight is an *OverwriteError.
//
// # Neighbours
//
// Buffers lie one behind the other in pieces of Options.Together, each at a multiple of
// 256 bytes, so that one copy can take neighbours that are in flight together. They share
// one event then, that of the last of them.
//
// # Recycling
//
// A pool has one goroutine from its first PutAfter until Close: it waits for the copies
// in flight, in their order, and sleeps meanwhile instead of spinning. Waking takes up to
// half a millisecond, so on waking it also asks the events after the first one and frees
// all that is done. With nothing in flight it makes no call. All copies in flight must be
// on one stream, or an event that is late holds up those after it.
//
// Sizes are exact: a size is rounded up to whole pages by the driver and not to a
// power of two, which would waste up to half of memory that can't be swapped.
package pinnedpool
