package driver

import (
	"context"
	"fmt"
	"time"
)

// Handles of a driver's objects. 0 is never valid.
type (
	// Stream is a FIFO queue of work on one device.
	Stream uintptr
	// Event marks a point in a stream.
	Event uintptr
	// Address is a place in device memory. Host code never dereferences it; the
	// CPU device's addresses are as unreadable for the host as a GPU's.
	Address uint64
)

// Device is one device as its driver sees it.
type Device interface {
	// Properties describes the device. It is constant and cheap.
	Properties() Properties
	// Memory returns the free and the total device memory in bytes.
	Memory() (free, total int64, err error)
	// Synchronize blocks the caller until all work submitted so far is done.
	Synchronize(ctx context.Context) error
	// Close ends the device. Streams, events and memory must be freed before.
	Close() error

	// NewStream makes a stream that has no implicit order with any other.
	NewStream(StreamConfig) (Stream, error)
	// AdoptStream makes a Stream of another library's native handle. FreeStream
	// then frees only what the driver added, never the native stream.
	AdoptStream(native uintptr) (Stream, error)
	FreeStream(Stream) error
	// StreamDone reports whether all work submitted to s is done.
	StreamDone(s Stream) (bool, error)
	SynchronizeStream(ctx context.Context, s Stream) error

	NewEvent(EventConfig) (Event, error)
	FreeEvent(Event) error
	// Record marks in e the work submitted to s so far.
	Record(e Event, s Stream) error
	// Wait makes later work of s wait, on the device, for e's newest Record.
	Wait(s Stream, e Event) error
	// EventDone reports whether e's newest Record is complete; true if there is none.
	EventDone(e Event) (bool, error)
	// SynchronizeEvent blocks the caller until e's newest Record is complete.
	SynchronizeEvent(ctx context.Context, e Event) error
	// Elapsed is the device time from start's newest Record to end's. Both must
	// be made with Timing, recorded and complete; else the error says which is not.
	Elapsed(start, end Event) (time.Duration, error)

	// Alloc returns bytes of device memory, aligned to 256 or more.
	Alloc(bytes int64) (Address, error)
	Free(Address) error
	// AllocHost returns page-aligned host memory that copies run from at full
	// speed and without blocking the caller, locked where the device needs it.
	AllocHost(bytes int64, c HostConfig) ([]byte, error)
	FreeHost(mem []byte) error
	// RegisterHost pins memory that the caller owns, until UnregisterHost.
	RegisterHost(mem []byte, c HostConfig) error
	UnregisterHost(mem []byte) error
	// HostAddress is where kernels see mem, which AllocHost or RegisterHost pinned.
	HostAddress(mem []byte) (Address, error)

	// The copies. The host side is borrowed until the copy is done. Pageable host
	// memory is accepted, but the call may then block the caller.
	CopyH2D(s Stream, dst Address, src []byte) error
	CopyD2H(s Stream, dst []byte, src Address) error
	CopyD2D(s Stream, dst, src Address, bytes int64) error
	Memset(s Stream, dst Address, value byte, bytes int64) error
	// HostFunc runs f on the host in stream order; the stream waits for it. f must
	// not call the device.
	HostFunc(s Stream, f func()) error
	// Launch submits a kernel. The driver copies l before it returns.
	Launch(s Stream, l *Launch) error
	// CheckKernel is the error that every Launch of k would return, whatever its
	// arguments: ErrUnsupported if k, which is not nil, has no form for this device.
	// It may load k's module, which takes milliseconds.
	CheckKernel(k *Kernel) error
}

// StreamConfig is what a stream is made with.
type StreamConfig struct {
	// Priority: a lower number is served first; out of range is clamped.
	Priority int
	// Name appears in reports.
	Name string
}

// EventConfig is what an event is made with.
type EventConfig struct {
	// Timing keeps the time of each Record, for Elapsed. It costs time on a GPU.
	Timing bool
	// BlockingSync makes SynchronizeEvent sleep rather than spin.
	BlockingSync bool
	// Name appears in reports.
	Name string
	// Witness, if not nil, is the one that the host's waits for the event belong to.
	Witness Witness
}

// HostConfig is how host memory is to be pinned.
type HostConfig struct {
	// Locked asks a device that has no need of it (the CPU device) to lock the
	// pages all the same.
	Locked bool
	// ReadOnly is for RegisterHost: the memory is a read-only mapping.
	ReadOnly bool
	// Pageable asks AllocHost for memory that is not locked, for where locked memory
	// is refused. Copies from it may block the caller.
	Pageable bool
}

// Properties describe a device.
type Properties struct {
	// Kind is the driver's name: "cpu" or "cuda".
	Kind string
	// Index is the device's number among those of its kind.
	Index int
	// Description is the product's name.
	Description string
	// UUID is empty where the device has none.
	UUID string
	// TotalBytes is the device's memory.
	TotalBytes int64
	// CopyEngines is how many copies can run at once; 0 means unknown.
	CopyEngines int
	// ComputeMajor and ComputeMinor are CUDA's compute capability, else 0.
	ComputeMajor, ComputeMinor int
	// PCI is the bus address, empty where there is none.
	PCI string
	// Processors are those of the host next to the device, and Node is their NUMA node,
	// from which pinned memory comes. Where all are alike, or the system does not say which
	// they are, Processors is nil, and Node says nothing.
	Processors []int
	Node       int
	// LowestPriority and HighestPriority bound StreamConfig.Priority; the highest
	// is the smaller number.
	LowestPriority, HighestPriority int
	// Modelled is true where times are computed from a model and not measured.
	Modelled bool
	// Notes say what was decided on the user's behalf: a symbol missing in an
	// older driver, a way of pinning chosen.
	Notes []string
}

// DeviceName is the name by which a device is asked for: "cpu", "cuda:1".
func DeviceName(p Properties) string {
	if p.Kind == "cpu" && p.Index == 0 {
		return "cpu"
	}
	return fmt.Sprintf("%s:%d", p.Kind, p.Index)
}
