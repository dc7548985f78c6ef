// Package device is what Leat knows of accelerators: a Device with its memory,
// Streams that run work in order, and Events by which streams wait for each other.
//
// The types are structs over the thin interface of package driver, so that the
// same code runs on the CPU device (device/cpu), on NVIDIA GPUs (device/cuda) and
// through a wrapper that watches or breaks calls (device/devicetest). Package
// device/auto picks a device by name.
//
// # The words
//
//   - A Stream is a FIFO queue. Submitting work returns at once; work of one
//     stream runs in order, work of two streams in any order that events allow.
//   - An Event marks a point in a stream: stream.Record(e) sets the mark,
//     other.Wait(e) makes another stream wait for it on the device, without the
//     host. A Wait binds to the newest Record issued before it.
//   - A Buffer owns device memory; a View is a range of it. Host code can't read either:
//     copies bring the bytes.
//   - A HostBuffer is pinned memory: page-locked where the device needs that, so
//     that copies run at the bus's speed and don't block the caller.
//   - A Graph is work that was captured, and an Exec launches it again as a whole.
//   - A Kernel is a computation of your own, and a Launch submits it: a Go function for
//     the CPU device, PTX for GPUs.
//
// # Several devices
//
// Devices of one kind are peers. A stream waits for a peer's event as for one of
// its own device, without the host; CopyPeer moves data from one to the other, in a
// stream of either. Record, Elapsed and every other call keep to one device.
//
//	up.Record(ready)            // on the first device
//	remote.Wait(ready)          // on the second
//	remote.CopyPeer(dst, src)   // dst on the second, src on the first
//	remote.Record(taken)
//	up.Wait(taken)              // before src is overwritten
//
// Connect, when the program starts, opens the way between two devices, says which it is
// (NVLink, PCIe, through the host), and makes sure that what is copied over it arrives.
//
// Where results meet behind replays of a Graph, an event recorded after each launch is what
// makes one ready: a launch has no identity of its own that the other could wait for, and
// in a capture no stream waits for another device.
//
// If a device ends, by a fault or by Close, while a peer's stream waits for one of its
// Records, that Record never completes: the wait fails, and is a fault of the device that
// waits. So close a device after those that wait for it.
//
// # Graphs
//
// A step of many short kernels costs more to submit than to run. Stream.Capture records
// it as a Graph, Graph.Instantiate makes an Exec of that, and Exec.Launch submits the
// whole as one item of a stream, as often as it is called.
//
//	graph, err := s.Capture(func() error { return step(s) })
//	exec, err := graph.Instantiate()
//	exec.Launch(s)
//
// Baked in is all that a call was given: the addresses of device and host memory, a
// kernel's scalars, grid and block, lengths, the value of a memset. A learning rate passed
// as a scalar stays what it was; what is to change lies in device memory that kernels
// read, and is written before the launch or by the graph's own copy. Not baked in are the
// bytes at those addresses: a captured CopyH2D uploads what its host memory holds at each
// launch. Exec.Update replaces the parameters, and Graph.Diff tells which differ between
// two captures.
//
// The Go code around the calls runs at the capture alone, checks and counters included. A
// HostFunc is a node: its function, with what it closes over, runs at every launch.
//
// A Buffer or HostBuffer of the device that a graph has an address of can't be closed
// before the graph and all of its Execs are: Close is refused. Memory of other libraries
// and of a peer device (CopyPeer) is its owner's to keep. Streams and events of the
// capture may be closed.
//
// What would make a graph lie, or never end, is refused with ErrCapture; Capture lists it.
//
// # Concurrency and errors
//
// Everything here may be called from several goroutines at once, except where its own
// comment says otherwise. The order of work in a stream is the order of the calls.
//
// Submitting work doesn't wait for the device, and neither do Done and Idle. These may
// wait: Synchronize, which is for that; a copy from or to host memory that isn't pinned;
// Alloc, AllocHost, RegisterHost and the Close of memory, for which a driver may wait
// until work in progress has ended; the first CopyPeer between two devices; the first
// launch of a kernel whose Module was not registered before the device was opened, which
// compiles it; and Device.Close.
//
// A Device, Stream, Event, Buffer, HostBuffer, Junction, Graph and Exec are ended by Close. A second
// Close does nothing and returns nil, so that a deferred one is always right. One that is
// called while another runs waits for it and returns its error. If the driver fails to
// free something, the error says so, the thing is as it was, and Close may be tried again.
// Any other call on what was closed is ErrInvalid, and on what belongs to a closed Device
// ErrClosed.
//
// Errors are *Error: operation, device, the driver's own code, likely cause. Work
// that fails on the device can't be reported by the call that submitted it; its
// error surfaces at a later call, with Async set. After ErrFault the device is
// lost to this process.
//
// With LEAT_ORDER=1 in the environment, or with a driver wrapped by hand, package
// device/order checks that every two accesses to the same memory are ordered by a wait,
// and names the wait that is missing. What it can't see, the host's own use of pinned
// memory for example, is told to it by HostReads, HostWrites, Stream.Uses and a Witness.
//
// With -tags invariants a Wait for an event that was never recorded, a silent
// no-op on every device, is an error that names the event.
package device
