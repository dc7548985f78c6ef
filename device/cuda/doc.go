// Package cuda opens NVIDIA GPUs through the CUDA driver API, found at run time:
// libcuda.so.1 on Linux, nvcuda.dll on Windows. Building needs neither cgo nor a
// CUDA toolkit, so one binary serves machines with and without a GPU; without a
// driver Open returns an error with ErrUnavailable and the reason. With the build
// tag leat_nocuda, and on systems that CUDA does not support, it always does.
//
// Most programs open a GPU through device/auto.
//
// # The driver's library
//
// On Linux it is looked for where the system's loader looks, LD_LIBRARY_PATH included,
// then where WSL, NixOS, containers, distributions, Jetsons and snaps keep it. The first
// that is a driver and starts is used: a file for another architecture, the toolkit's
// stub and a driver that does not start are passed over. If there is none, the error
// names each path that was tried, with the reason. LEAT_CUDA_LIBRARY in the environment
// names the library by an absolute path, and nothing else is tried then. The search is
// made once in a process.
//
// # Threads and contexts
//
// CUDA keeps its current context per OS thread; goroutines move between threads.
// Every operation here is a group of driver calls that locks the goroutine to its
// thread, pushes the device's primary context, calls, pops and unlocks (about a
// quarter of a microsecond). So no thread keeps a context of ours, a thread's own
// context is found as it was left, and nothing is ever created on device 0 by a
// thread that forgot to choose. A goroutine that stayed locked instead would pay
// 57 microseconds for each hop over a channel.
//
// Any number of goroutines may call at once. Synchronize and its kin block an OS
// thread, not a P. With a context that can be cancelled they wait in a goroutine,
// and return early when it is; that goroutine ends with the work on the GPU, and
// Close joins it.
//
// # Memory for calls
//
// Arguments, results and kernel parameters travel in groups taken from a free
// list, pinned Go memory that never moves and is never freed. A list, and not a
// block for each stream, because then no submission waits for another's lock.
// Steady state allocates nothing.
//
// # Fork
//
// Go starts processes without sharing memory with them for longer than an instant,
// but a C library in the process may fork. A page of private memory that is pinned
// then becomes copy-on-write: what is written to it next lies in a copy, and the GPU
// goes on reading the old page. Pinned memory that is mapped here is kept out of such
// children (MADV_DONTFORK), and cuMemHostAlloc's is the driver's own shared mapping.
// Memory for RegisterHost is the caller's: where something may fork, map it shared, or
// keep it out of children in the same way. A child must not use CUDA.
//
// # Graphs
//
// Captures are in thread-local mode: the driver forbids the capturing thread what is
// unsafe and leaves others alone. What package device forbids in a capture is refused
// here before the driver is asked, since drivers differ in what they allow. A graph's
// nodes and their parameters are read back from the driver, so that work which other
// libraries submit to a captured stream is seen and compared too; where it does not tell
// the sizes of their kernels' parameters (before CUDA 12.4), the node says so. Host
// functions are kept until the graph and its execs are freed.
//
// # Several GPUs
//
// All GPUs are peers. A stream waits on the device for another GPU's event.
// CopyPeer goes over NVLink or PCIe where the GPUs reach each other's memory, and
// else through host memory, as Properties.Notes then says. The first copy between
// two GPUs opens the memory of each to the other, which may wait for work that is
// running: make it before the work flows. What it opens stays open as long as the
// contexts do, since other libraries share them.
//
// # Faults
//
// CUDA reports the failure of a kernel or a copy at some later call. Such an error
// has Async set and names the call that found it, not the one that caused it. It
// also ends the context for this process: from then on every call returns that
// same error at once, host functions that were queued never run, and Close returns
// without calling the driver. Restart the process. With LEAT_SYNC=1 in the
// environment when the device opens, each call waits for what it submitted, and
// the fault is reported where it was caused.
//
// A refused allocation is no fault: the next call is healthy.
//
// # Older drivers
//
// The oldest driver is that of CUDA 11.0. A function that a driver lacks switches
// off what needs it, and Properties.Notes says so.
package cuda
