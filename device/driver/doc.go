// Package driver is the thin interface between package device and whatever does
// the work underneath it: the CPU device, the CUDA driver, or a wrapper that
// watches, delays or swallows calls.
//
// It is flat and speaks in handles, as the CUDA driver API does, so that a
// wrapper embeds a Device and overrides the two or three calls it cares about.
// Programs use package device, which has all that kernels of their own need; this
// package is for drivers and their wrappers.
//
// # Rules for a driver
//
//   - Every method may be called from any goroutine at any time.
//   - Work submitted to one stream runs in order of submission; the submitting
//     call returns without waiting for it. Work of different streams is ordered
//     by events alone.
//   - Wait binds to the newest Record of the event issued before it, in the order
//     of the calls. With no Record before it, it is a no-op.
//   - A device that is a Peer extends both rules to the events of its peers, on
//     whatever device they were recorded.
//   - A device that is a Grapher keeps what is submitted to a captured stream instead of
//     running it; a launch takes the place of one item in its stream.
//   - Handles are never 0 and are not used again while anything refers to them.
//   - Freeing a stream or an event with work pending returns at once; its work
//     goes on. Freeing memory with work pending on it is the caller's bug.
//   - Errors are *Error. An error of work that ran earlier may surface at any
//     later call; Error.Async says so.
//   - In steady state Record, Wait, EventDone, the copies, Memset and Launch
//     allocate nothing. Nor does LaunchGraph, of a Grapher.
package driver
