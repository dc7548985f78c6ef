// Package cpu is the device that runs anywhere: the default where there is no
// GPU, and the proving ground for everything written against package device.
//
// It has CUDA's semantics. Streams are FIFO and asynchronous; events complete
// later; each Record is a recording of its own, to which a Wait binds when it is
// issued; device memory has addresses that the host can't read.
//
// # Three ways to run
//
//   - Plain (the zero Options): copies and kernels run at once on goroutines, one
//     for each engine: H2D, D2H, the link and compute overlap as on a GPU.
//   - With a Model the operations take the times of the modelled card, exactly:
//     times are computed, not measured, so that nothing drifts. Under
//     testing/synctest whole schedules can be compared for equality; outside of it
//     the model runs in real time.
//   - With an Adversary, in either way, the device does what the rules allow and
//     what a careless caller doesn't expect: it poisons destinations, reads
//     sources at the last legal moment, delays, reorders and fails.
//
// # How it works
//
// One mutex guards a device. Streams, recordings and lists of ready operations
// form a state machine that is advanced by whoever submits or finishes something;
// nobody holds the mutex while memory is copied, a kernel runs or somebody waits.
//
// Goroutines exist only while there is something for them to do: an engine's
// starts when an operation is ready and ends when none is, and modelled time is a
// timer. An idle device has none, closed or not; Close waits for those that run.
// A device must be opened in the synctest bubble that uses it.
//
// In steady state nothing is allocated: operations, recordings and waiters come
// from the device's own free lists.
//
// # Several devices
//
// Devices of one process are peers: streams wait for each other's events, and
// CopyPeer goes over the link of the device whose stream it is in. Every device has
// its own mutex, clock and order of submission. A wait for another device's event
// is bound to a recording of the waiting device's own, which stands for the other's
// and ends at the same time; what completes a recording puts that news in an outbox,
// and delivers it after giving up the mutex. So nobody holds two mutexes, no
// goroutine is needed to carry the news, and it arrives within the instant.
//
// Where a device ends with a recording pending, by a fault or by Close, the devices
// whose streams come to a wait for it end with a Fault of that Wait. Memory that
// another device's copy uses can't be freed, and outlives its device until that
// copy is done.
//
// # Graphs
//
// A capture keeps operations, and the Records and Waits between them, instead of running
// them. A launch submits them anew: those of the stream on which the capture began to the
// stream of the launch, those of every stream that was forked off to one that the graph
// has of its own. So nodes are operations like any others: engines, a Model's times and
// an Adversary treat them alike, but for the latencies of the Model, one for the launch
// and smaller ones for its kernels.
//
// What CUDA refuses in a capture is refused here, and in doubt a little more: waiting for
// an event that was never recorded, and all that asks or waits by the goroutine that
// captures. Two things that CUDA can do are missing: a graph as a node of another, and a
// capture that spans devices; CopyPeer may be captured.
//
// # Modelled time
//
// Every operation has logical times: it is ready when its stream reaches it,
// starts when it is ready and an engine is free, and ends its duration later.
// Data moves at the end. An instant settles before engines are given out: what
// became ready at t is decided a nanosecond of the clock later, when every
// goroutine has had its turn at t, yet it starts at t. So ties resolve by order of
// submission, not by the Go scheduler's mood. An operation that takes no time on
// an idle engine delays nobody and runs at once.
//
// Host functions run on goroutines of their own and take the time they take.
// Memset and D2D copies run on the compute engines, copies between devices on the
// link, which takes one at a time.
package cpu
