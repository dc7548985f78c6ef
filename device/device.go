package device

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
)

// Properties describe a device: its Kind ("cpu" or "cuda") and Index, Description, UUID,
// TotalBytes of memory, CopyEngines, CUDA's compute capability, PCI address, the Processors
// next to it and their NUMA Node where there are several, the range of stream priorities,
// whether times are Modelled, and the driver's Notes.
type Properties = driver.Properties

// Error is the error of a device's operations:
//
//	Op     string  // the operation at which it surfaced, "CopyH2D"
//	Device string  // the device's name, "cuda:0"
//	Code   int     // the driver's own code and its name, 0 and "" if it has none
//	Name   string
//	Async  bool    // work submitted earlier caused it, and Op only found it
//	Hint   string  // the likely cause and what to do, a sentence
//	Err    error   // one of the sentinels below, OptionErrors, or what caused it
type Error = driver.Error

// Panic and Goexit are the causes of a fault in Go code that the device ran, a kernel's Go
// function or a HostFunc: errors.As finds them in the *Error.
type (
	Panic  = driver.Panic
	Goexit = driver.Goexit
)

// The sentinels that errors.Is finds in an *Error.
var (
	// ErrClosed: the device is closed.
	ErrClosed = driver.ErrClosed
	// ErrOutOfMemory: device or pinned memory was refused. The device is healthy.
	ErrOutOfMemory = driver.ErrOutOfMemory
	// ErrFault: work on the device failed in a way that ends the device for this
	// process, at an illegal address for example. Nothing on it will run again.
	ErrFault = driver.ErrFault
	// ErrNotRecorded: the event was never recorded.
	ErrNotRecorded = driver.ErrNotRecorded
	// ErrNotComplete: the event's newest Record is not complete yet.
	ErrNotComplete = driver.ErrNotComplete
	// ErrNoTiming: the event was made without Timing.
	ErrNoTiming = driver.ErrNoTiming
	// ErrInvalid: something was closed or belongs to another device, or an option, a
	// parameter or a range has a value that it can't have.
	ErrInvalid = driver.ErrInvalid
	// ErrUnsupported: the device can't do this.
	ErrUnsupported = driver.ErrUnsupported
	// ErrUnavailable: the device can't be opened here.
	ErrUnavailable = driver.ErrUnavailable
	// ErrCorrupt: what Connect copied to another device arrived as other bytes.
	ErrCorrupt = driver.ErrCorrupt
	// ErrCapture: a graph capture forbids the call, or has failed. The error has a
	// CaptureError too.
	ErrCapture = driver.ErrCapture
)

const (
	errForeignEvent = "the event belongs to another device"
	errNoEvent      = "the event is nil"
)

// A Device is one CPU device or GPU. It is safe for concurrent use.
type Device struct {
	drv   driver.Device
	props Properties
	name  string
	live  counters
	// observer is the checker in drv, nil if there is none.
	observer driver.Observer
	closing  closing
	blocks   held
	bodies   bodies
	ended    atomic.Bool // Close is done, with or without an error

	mu    sync.Mutex
	notes []string
}

type counters struct {
	streams, events, buffers, hostBuffers atomic.Int64
	graphs, execs                         atomic.Int64
	deviceBytes, pinnedBytes, allocations atomic.Int64
}

// New makes a Device of a driver and takes it: Close closes it too.
func New(drv driver.Device) *Device {
	d := &Device{drv: drv, props: drv.Properties(), observer: driver.ObserverOf(drv)}
	d.name = driver.DeviceName(d.props)
	d.notes = append(d.notes, d.props.Notes...)
	return d
}

// Driver is the driver below the Device, for wrapping it.
func (d *Device) Driver() driver.Device { return d.drv }

// Name is the name by which device/auto opens the device: "cpu", "cuda:1".
func (d *Device) Name() string { return d.name }

// String is Name and the product's name.
func (d *Device) String() string {
	if d.props.Description == "" {
		return d.name
	}
	return d.name + " (" + d.props.Description + ")"
}

// Properties describes the device.
func (d *Device) Properties() Properties { return d.props }

// Note keeps a sentence about a decision made on the user's behalf.
func (d *Device) Note(sentence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, sentence)
}

// noteOnce is Note for a sentence that may be there already.
func (d *Device) noteOnce(sentence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.notes, sentence) {
		d.notes = append(d.notes, sentence)
	}
}

// Notes are the decisions made on the user's behalf, the driver's first.
func (d *Device) Notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.notes...)
}

// PeerOf reports whether the streams of d may wait for events of other, and copy
// from its memory and into it. Devices of one kind are peers.
func (d *Device) PeerOf(other *Device) bool {
	_, ok := d.peer(other)
	return ok || d == other
}

// peer is d's driver as one that works together with other's.
func (d *Device) peer(other *Device) (driver.Peer, bool) {
	p, ok := d.drv.(driver.Peer)
	return p, ok && p.PeerOf(other.drv)
}

// Memory is the free and the total device memory in bytes.
func (d *Device) Memory() (free, total int64, err error) { return d.drv.Memory() }

// Synchronize blocks the caller until all work submitted to the device is done.
// It is for tests and shutdown; nothing on a pipeline's path may call it.
func (d *Device) Synchronize(ctx context.Context) error { return d.drv.Synchronize(ctx) }

// Close ends the device. Close what was made on it first: the error lists what was not
// closed, and the device is closed all the same. Every other call is ErrClosed from then
// on.
func (d *Device) Close() error {
	return d.closing.close(func() error {
		err := d.drv.Close()
		d.ended.Store(true)
		return err
	})
}

// Usage counts what is alive on a device; a leak shows in it.
type Usage struct {
	Streams, Events, Buffers, HostBuffers int64
	Graphs, Execs                         int64
	DeviceBytes, PinnedBytes              int64
	// Allocations counts every allocation of device or pinned memory and every
	// stream, event, graph and exec made so far; it stands still in steady state.
	Allocations int64
}

// Usage returns what is alive now.
func (d *Device) Usage() Usage {
	c := &d.live
	return Usage{
		Streams: c.streams.Load(), Events: c.events.Load(),
		Buffers: c.buffers.Load(), HostBuffers: c.hostBuffers.Load(),
		Graphs: c.graphs.Load(), Execs: c.execs.Load(),
		DeviceBytes: c.deviceBytes.Load(), PinnedBytes: c.pinnedBytes.Load(),
		Allocations: c.allocations.Load(),
	}
}

// stale is the error for something that was closed before. That its device was closed
// since says more.
func (d *Device) stale(op, hint string) error {
	if d.ended.Load() {
		return &Error{Op: op, Device: d.name, Err: ErrClosed}
	}
	return d.invalid(op, hint)
}

// seenFrom is d's name in an error of other, which may have the same.
func (d *Device) seenFrom(other *Device) string {
	if d != other && d.name == other.name {
		return "another Device of the name " + d.name
	}
	return d.name
}

func (d *Device) invalid(op, hint string) error {
	return &Error{Op: op, Device: d.name, Err: ErrInvalid, Hint: hint}
}
