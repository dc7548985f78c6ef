// Package order is a race detector for streams. It is a wrapper around a driver that
// follows what orders the work of streams, and reports any two accesses to the same
// memory, at least one of them a write, that nothing orders: which memory, both calls
// with their places, and the wait that is missing, in words.
//
// It looks at the waits that the program submits, and not at what happened to run first:
// a missing wait is reported the first time, also on a CPU device where all bytes are
// still right, and on a GPU that is fast enough a thousand times out of a thousand.
//
// # How to use it
//
// With LEAT_ORDER=1 in the environment every device that this module's drivers open is
// watched by one Checker: the call that would make the second access returns a
// *device.Error with an *Error in it, nothing is submitted, and the report is printed to
// standard error. No rebuild is needed:
//
//	LEAT_ORDER=1 go run ./examples/train
//
// In a test, wrap a driver by hand and require that Err is nil at the end:
//
//	checker := order.New(order.Options{})
//	dev := device.New(checker.Wrap(drv))
//
// # What orders
//
// All of it, and nothing else, orders work, on every device alike:
//
//   - Work of one stream runs in the order of its submission.
//   - Stream.Wait orders what is submitted to the stream later behind the event's
//     newest Record, of its own device or of a peer. A wait for an event that was never
//     recorded orders nothing.
//   - The host has seen the end of work when Event.Synchronize, Stream.Synchronize or
//     Device.Synchronize has returned without an error, when Event.Done or Stream.Done
//     has reported true, and when a HostFunc runs behind it. What one goroutine has
//     seen counts for all of them: Go's own race detector watches how they tell each
//     other. Sometimes that would mistake luck for order, as with a goroutine that
//     recycles buffers and happens to be early. Such a goroutine waits by events of a
//     device.Witness, and what it sees counts for it alone; packages pinnedpool and
//     prefetch do so in all of their stages.
//   - Work comes behind all that the host has seen the end of when it is submitted. The
//     order of submission itself orders nothing between two streams.
//   - A device that has ended, by a fault or by Close, does no more work.
//   - In a graph what ordered the captured calls orders the nodes: their streams, and the
//     waits among them. The whole of a launch takes its place in the launch's stream, and
//     comes behind the earlier launches of the same device.Exec.
//
// These order nothing, though a driver may at times wait in them, or one could conclude
// something from them: Alloc, Free and the like; Elapsed and Stream.Idle; copies from and
// to memory that isn't pinned, which block the caller on some devices; the legacy default
// stream, with which no stream here has any order, and which StreamFromHandle refuses.
//
// # What accesses
//
// What copies and Memset use is known from the call. What a kernel uses is what its
// arguments say: give In, Out and InOut the range that the kernel really uses. Host
// memory counts like device memory, also where a kernel sees it by another address. What
// no call shows is told by Stream.Uses, for kernels of other libraries on a stream's handle and for
// what a HostFunc touches, and by Device.HostReads and HostWrites, for the host's own
// use of memory that copies use. Packages pinnedpool and prefetch tell theirs.
//
// Free, FreeHost and UnregisterHost are writes by the host: memory that work may still
// use is not freed and the call returns the report. Memory is known by its address:
// when another library frees it and a new buffer gets the same address, what was
// submitted for the old one is remembered, and the report names both.
//
// Captured calls are checked against each other when they are captured, and every launch
// of the graph against all else, as if it made all their accesses: a report of
// LaunchGraph names the node and where it was captured. A HostFunc in a graph shows the
// host nothing; wait for an event that is recorded behind the launch.
//
// A stream that was made from another library's handle is one stream with every other
// that is made of the same handle, for as long as the device is open.
//
// # What it forgets, and what it costs
//
// An access is kept for as long as a later one can be unordered with it. Work that the
// host has seen the end of is before all later work, and is dropped when there is much of
// it. So memory grows with the number of separate ranges that work has used since the
// host last waited for that work, and with the streams alive, and not with the length of
// the run. The calls of a report are remembered by their stacks, the innermost twelve
// frames.
//
// Reports are one of each pair of places, and the first 1000 of those.
//
// Off, it costs nothing: the driver is not wrapped. On, a call takes 0.9 µs more, most of
// it for the caller's stack, and in steady state allocates nothing; on an H200 a batch of
// prefetch's is launched 16 µs after the call of Next instead of 10 (go test -bench Calls;
// leat bench -only next; an H200's machine, 2026-11-30). All devices of a Checker share a
// mutex, which is never held while a driver works.
package order
