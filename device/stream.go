package device

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/internal/invariants"
)

// StreamOptions is what a stream is made with. The zero value is ready to use.
type StreamOptions struct {
	// Priority: a lower number is served first, 0 is the default. A number outside the
	// device's range is taken as the nearest one in it.
	Priority int
	// Name appears in reports and traces.
	Name string
}

// A Stream is a FIFO queue of work on one device. It is safe for concurrent use;
// the order of the work is the order of the calls.
type Stream struct {
	dev     *Device
	h       driver.Stream
	name    string
	closing closing

	synchronized atomic.Int64 // for which the host has waited

	mu     sync.Mutex
	launch driver.Launch // borrowed by Launch, so that callers' own stay off the heap
}

// NewStream makes a stream. The caller owns it until Close.
func (d *Device) NewStream(o StreamOptions) (*Stream, error) {
	h, err := d.drv.NewStream(driver.StreamConfig{Priority: o.Priority, Name: o.Name})
	if err != nil {
		return nil, err
	}
	return d.stream(h, o.Name), nil
}

// StreamFromHandle makes a Stream of another library's native handle (a CUstream),
// which stays that library's: Close frees nothing of it. The default streams are
// refused, because they synchronise with all others.
func (d *Device) StreamFromHandle(native uintptr) (*Stream, error) {
	h, err := d.drv.AdoptStream(native)
	if err != nil {
		return nil, err
	}
	return d.stream(h, fmt.Sprintf("native %#x", native)), nil
}

func (d *Device) stream(h driver.Stream, name string) *Stream {
	d.live.streams.Add(1)
	d.live.allocations.Add(1)
	return &Stream{dev: d, h: h, name: name}
}

// Device is the stream's device.
func (s *Stream) Device() *Device { return s.dev }

// Handle is the driver's handle.
func (s *Stream) Handle() driver.Stream { return s.h }

// Name is the name that the stream was made with.
func (s *Stream) Name() string { return s.name }

// Close frees the stream; work already submitted goes on. Every other call is
// ErrInvalid from then on, and a second Close does nothing.
func (s *Stream) Close() error {
	return s.closing.close(func() error {
		if err := s.dev.drv.FreeStream(s.h); err != nil {
			return err
		}
		s.dev.live.streams.Add(-1)
		return nil
	})
}

// open refuses op on a closed stream.
func (s *Stream) open(op string) error {
	if s.closing.closed.Load() {
		return s.dev.stale(op, fmt.Sprintf("the stream %q was closed before", s.name))
	}
	return nil
}

// uses refuses op on a closed stream, or with memory that isn't the device's.
func (s *Stream) uses(op string, v View) error {
	if err := v.usable(op, s.dev); err != nil {
		return err
	}
	return s.open(op)
}

// works is uses for work that is submitted to s.
func (s *Stream) works(op string, v View) error {
	if err := v.usable(op, s.dev); err != nil {
		return err
	}
	return s.submits(op)
}

// Record marks in e, an event of the stream's device, the work submitted to s so
// far.
func (s *Stream) Record(e *Event) error {
	if e == nil {
		return s.dev.invalid("Record", errNoEvent)
	}
	if e.dev != s.dev {
		return s.dev.invalid("Record", errForeignEvent)
	}
	if err := s.submits("Record"); err != nil {
		return err
	}
	if err := e.open("Record"); err != nil {
		return err
	}
	if err := s.dev.drv.Record(e.h, s.h); err != nil {
		return err
	}
	e.records.Add(1)
	return nil
}

// Wait makes the work submitted to s from now on wait, on the device, for the
// newest Record of e issued so far. The caller doesn't wait. e may belong to a peer
// of the stream's device.
func (s *Stream) Wait(e *Event) error {
	if err := s.open("Wait"); err != nil {
		return err
	}
	if e == nil {
		return s.dev.invalid("Wait", errNoEvent)
	}
	if err := e.open("Wait"); err != nil {
		return err
	}
	if invariants.Enabled && e.records.Load() == 0 {
		return &Error{Op: "Wait", Device: s.dev.name, Err: ErrNotRecorded,
			Hint: fmt.Sprintf("stream %q would wait for event %q and find nothing to wait for", s.name, e.name)}
	}
	if e.dev == s.dev {
		if err := s.dev.drv.Wait(s.h, e.h); err != nil {
			return err
		}
		return s.within("Wait") // it is captured by now, if e is
	}
	peer, ok := s.dev.peer(e.dev)
	if !ok {
		return s.dev.invalid("Wait", errForeignEvent)
	}
	return peer.WaitPeer(s.h, e.dev.drv, e.h)
}

// Done reports whether all work submitted to s is done.
func (s *Stream) Done() (bool, error) {
	if err := s.open("StreamDone"); err != nil {
		return false, err
	}
	return s.dev.drv.StreamDone(s.h)
}

// Idle is Done as a hint, for callers that only choose among streams by it: to a checker
// the answer orders nothing.
func (s *Stream) Idle() (bool, error) {
	if err := s.open("StreamDone"); err != nil {
		return false, err
	}
	return driver.StreamIdle(s.dev.drv, s.h)
}

// Synchronize blocks the caller until all work submitted to s is done.
func (s *Stream) Synchronize(ctx context.Context) error {
	if err := s.open("SynchronizeStream"); err != nil {
		return err
	}
	began := time.Now()
	defer func() { s.synchronized.Add(int64(time.Since(began))) }()
	return s.dev.drv.SynchronizeStream(ctx, s.h)
}

// Synchronized is for how long callers of Synchronize have waited, those that still wait not
// counted: time in which a loop submits nothing.
func (s *Stream) Synchronized() time.Duration { return time.Duration(s.synchronized.Load()) }

// CopyH2D copies src into dst, which must be of src's length. src is borrowed
// until the copy is done. From memory that isn't pinned the call blocks.
func (s *Stream) CopyH2D(dst View, src []byte) error {
	if err := s.sameLength("CopyH2D", dst, int64(len(src))); err != nil || len(src) == 0 {
		return err
	}
	if err := s.works("CopyH2D", dst); err != nil {
		return err
	}
	return s.dev.drv.CopyH2D(s.h, dst.addr, src)
}

// CopyD2H copies src into dst, which must be of src's length. dst is borrowed
// until the copy is done.
func (s *Stream) CopyD2H(dst []byte, src View) error {
	if err := s.sameLength("CopyD2H", src, int64(len(dst))); err != nil || len(dst) == 0 {
		return err
	}
	if err := s.works("CopyD2H", src); err != nil {
		return err
	}
	return s.dev.drv.CopyD2H(s.h, dst, src.addr)
}

// CopyD2D copies src into dst, both of this device and of one length. They must be the
// same range or must not overlap, since a GPU copies in no stated order.
func (s *Stream) CopyD2D(dst, src View) error {
	if err := s.sameLength("CopyD2D", dst, src.bytes); err != nil || src.bytes == 0 {
		return err
	}
	return s.copyD2D("CopyD2D", dst, src)
}

func (s *Stream) copyD2D(op string, dst, src View) error {
	if err := s.works(op, dst); err != nil {
		return err
	}
	if err := s.uses(op, src); err != nil {
		return err
	}
	if dst.addr != src.addr && dst.Overlaps(src) {
		return s.dev.invalid(op, "the source and the destination overlap")
	}
	return s.dev.drv.CopyD2D(s.h, dst.addr, src.addr, src.bytes)
}

// CopyPeer copies src into dst, which must be of src's length, between two devices
// that are peers. The stream belongs to either, and the copy takes its place in
// that stream alone: events order it with the other device's work. Within one
// device it is CopyD2D. Where data can't go from device to device the error is
// ErrUnsupported. The first copy between two devices may be slow, because it opens the
// memory of each to the other, if Connect has not done so.
func (s *Stream) CopyPeer(dst, src View) error {
	const op = "CopyPeer"
	if err := s.sameLength(op, dst, src.bytes); err != nil || src.bytes == 0 {
		return err
	}
	other := dst.dev
	if other == s.dev {
		other = src.dev
	}
	switch {
	case dst.dev == src.dev && other == s.dev:
		return s.copyD2D(op, dst, src)
	case dst.dev != s.dev && src.dev != s.dev:
		return s.dev.invalid(op, fmt.Sprintf("the stream %q belongs to neither of the two devices", s.name))
	}
	peer, ok := s.dev.peer(other)
	if !ok {
		return &Error{Op: op, Device: s.dev.name, Err: ErrUnsupported,
			Hint: fmt.Sprintf("%s is no peer of it: copy through host memory", other.name)}
	}
	for _, v := range [...]View{dst, src} {
		if err := v.usable(op, v.dev); err != nil {
			return err
		}
	}
	if err := s.submits(op); err != nil {
		return err
	}
	return peer.CopyPeer(s.h, dst.place(), src.place(), src.bytes)
}

// Memset sets every byte of dst to value.
func (s *Stream) Memset(dst View, value byte) error {
	if dst.bytes == 0 {
		return nil
	}
	if err := s.works("Memset", dst); err != nil {
		return err
	}
	return s.dev.drv.Memset(s.h, dst.addr, value, dst.bytes)
}

// HostFunc runs f on the host in stream order. f must not call the device. A panic in
// f, and runtime.Goexit, are a fault of the device, ErrFault: later calls return it with
// a *Panic and its stack.
func (s *Stream) HostFunc(f func()) error {
	if f == nil {
		return s.dev.invalid("HostFunc", "no function to run")
	}
	if err := s.submits("HostFunc"); err != nil {
		return err
	}
	return s.dev.drv.HostFunc(s.h, f)
}

// Launch submits a kernel. l is borrowed for the call. The error is ErrUnsupported if the
// kernel has no form for the device, and ErrInvalid if its grid or block is not what CUDA
// accepts, or if memory among its arguments belongs to another device or was closed;
// nothing is submitted then.
func (s *Stream) Launch(l *Launch) error {
	if err := s.submits("Launch"); err != nil {
		return err
	}
	if l == nil {
		return s.dev.invalid("Launch", "the launch is nil")
	}
	if l.Kernel == nil {
		return s.dev.invalid("Launch", "the launch has no kernel")
	}
	if err := s.checkShape(l); err != nil {
		return err
	}
	if err := s.checkArgs(l); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launch = *l
	return s.dev.drv.Launch(s.h, &s.launch)
}

// checkShape holds the grid and the block against what CUDA takes, whatever the device:
// a launch that one refuses is refused by all. In y and z, 0 means 1.
func (s *Stream) checkShape(l *Launch) error {
	g, b := &l.Grid, &l.Block
	switch {
	case g[0] == 0:
		return s.dev.invalid("Launch", fmt.Sprintf("kernel %q: Grid is %v, want at least 1 in x", l.Kernel.Name, *g))
	case b[0] == 0:
		return s.dev.invalid("Launch", fmt.Sprintf("kernel %q: Block is %v, want at least 1 in x", l.Kernel.Name, *b))
	}
	threads := uint64(b[0]) * uint64(max(b[1], 1))
	if g[0] <= math.MaxInt32 && g[1] <= math.MaxUint16 && g[2] <= math.MaxUint16 &&
		threads <= 1024 && b[2] <= 64 && threads*uint64(max(b[2], 1)) <= 1024 {
		return nil
	}
	return s.dev.invalid("Launch", fmt.Sprintf("Grid is %v, want at most [2147483647 65535 65535]; Block is %v, want at most [1024 1024 64] and 1024 threads in all", *g, *b))
}

// checkArgs looks at the memory that View's In, Out and InOut appended. Another
// device's would be a fault, which ends the device, or somebody else's bytes.
func (s *Stream) checkArgs(l *Launch) error {
	owner, bad, err := l.Args.Owner()
	if err == nil && (owner == nil || owner == any(s.dev)) {
		return nil
	}
	name := l.Kernel.Name
	known := new(Error)
	if errors.As(err, &known) {
		return &Error{Op: "Launch", Device: s.dev.name, Err: known.Err,
			Hint: strings.TrimSuffix(fmt.Sprintf("kernel %q: argument %d: %s", name, bad, known.Hint), ": ")}
	}
	return s.dev.invalid("Launch", fmt.Sprintf("kernel %q: the memory of its arguments belongs to %s", name, owner.(*Device).seenFrom(s.dev)))
}

func (s *Stream) sameLength(op string, v View, n int64) error {
	if v.bytes == n {
		return nil
	}
	return s.dev.invalid(op, fmt.Sprintf("one side has %d bytes, the other %d", v.bytes, n))
}
