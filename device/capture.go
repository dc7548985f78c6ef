package device

import (
	"errors"
	"runtime"

	"github.com/leat-go/leat/device/driver"
)

// CaptureError is what a call in a graph capture, or beside one, did wrong. errors.Is
// finds the constants below and ErrCapture in the *Error of the call.
type CaptureError = driver.CaptureError

// The CaptureErrors.
const (
	// CaptureUnsupported: the call is not allowed in a capture.
	CaptureUnsupported = driver.CaptureUnsupported
	// CaptureInvalidated: an earlier call, which the Hint names, has spoilt the capture.
	CaptureInvalidated = driver.CaptureInvalidated
	// CaptureMerge: a wait would join two captures.
	CaptureMerge = driver.CaptureMerge
	// CaptureUnmatched: no capture began on the stream.
	CaptureUnmatched = driver.CaptureUnmatched
	// CaptureUnjoined: a stream that was forked off was not joined again.
	CaptureUnjoined = driver.CaptureUnjoined
	// CaptureIsolation: captured work would wait for an event that was recorded outside.
	CaptureIsolation = driver.CaptureIsolation
	// CaptureImplicit: another library uses the legacy default stream meanwhile.
	CaptureImplicit = driver.CaptureImplicit
	// CapturedEvent: the event's newest Record is in a capture, so that nothing can be
	// asked about it, and nothing outside can wait for it.
	CapturedEvent = driver.CapturedEvent
	// CaptureWrongThread: the capture began on another goroutine.
	CaptureWrongThread = driver.CaptureWrongThread
	// CaptureActive: the stream is being captured already.
	CaptureActive = driver.CaptureActive
)

const opCapture = "Capture"

// Capture calls body and makes a Graph of the work that it submits to s, which is kept
// instead of run. So is the work of every stream that waits in body for an event recorded
// in body, from that wait on; s must wait for it again before body returns. The caller
// owns the Graph until Close.
//
// In body these calls are refused with ErrCapture. That spoils the capture: what is
// submitted to its streams from then on is refused with CaptureInvalidated, and so is the
// capture itself, whatever body makes of it:
//
//   - Done, Idle, Synchronize and Elapsed, of anything;
//   - Alloc, AllocHost, RegisterHost, Instantiate and Update, and the Close of memory, of
//     an Exec and of captured streams;
//   - a Wait for an event that was not recorded in body;
//   - work, and a Record or Wait, on a stream of the device that isn't captured: it would
//     happen at the capture and at no launch;
//   - copies from and to host memory that isn't pinned;
//   - Exec.Launch on a captured stream;
//   - a wait by another device's stream.
//
// The first two rows, and that on other streams, hold for the goroutine that captures:
// others go on as always, a pipeline beside it included, unless they ask about a captured
// stream or event or synchronise the device, which spoils the capture too. Other
// goroutines may submit to the captured streams.
//
// Capture on a captured stream is refused too, with CaptureActive, and spoils nothing.
//
// Capture returns body's error as it is. If body panics or ends its goroutine nothing is
// left of the capture. Afterwards the streams are usable, whatever happened; an event
// recorded in body is usable when it is recorded again.
func (s *Stream) Capture(body func() error) (*Graph, error) {
	const op = opCapture
	if body == nil {
		return nil, s.dev.invalid(op, "no function to capture")
	}
	if err := s.open(op); err != nil {
		return nil, err
	}
	drv, err := s.dev.grapher(op)
	if err != nil {
		return nil, err
	}
	h, err := s.capture(drv, body)
	if err != nil {
		return nil, err
	}
	nodes, err := drv.GraphNodes(h)
	if err != nil {
		return nil, errors.Join(err, drv.FreeGraph(h))
	}
	s.dev.live.graphs.Add(1)
	s.dev.live.allocations.Add(1)
	return &Graph{dev: s.dev, drv: drv, h: h, nodes: nodes, held: s.dev.blocks.hold(nodes)}, nil
}

// capture runs body between the capture's begin and its end.
func (s *Stream) capture(drv driver.Grapher, body func() error) (driver.Graph, error) {
	runtime.LockOSThread() // CUDA tells who captures by the thread
	defer runtime.UnlockOSThread()
	if err := drv.BeginCapture(s.h); err != nil {
		return 0, err
	}
	b := s.dev.bodies.begin()
	returned := false
	defer func() {
		if !returned {
			_ = s.dev.bodies.end(b)
			discard(drv, s.h)
		}
	}()
	err := body()
	returned = true
	astray := s.dev.bodies.end(b)
	if err != nil {
		discard(drv, s.h)
		return 0, err
	}
	h, err := drv.EndCapture(s.h)
	if astray == nil || err != nil {
		return h, err
	}
	return 0, errors.Join(s.spoilt(opCapture, astray), drv.FreeGraph(h))
}

// discard ends a capture of which nothing is wanted.
func discard(drv driver.Grapher, s driver.Stream) {
	if h, err := drv.EndCapture(s); err == nil {
		_ = drv.FreeGraph(h)
	}
}

// Capturing reports whether s is being captured: whether a Capture on it is in its body,
// or it was forked off one that is.
func (s *Stream) Capturing() (bool, error) {
	const op = "Capturing"
	if err := s.open(op); err != nil {
		return false, err
	}
	drv, err := s.dev.grapher(op)
	if err != nil {
		return false, err
	}
	return drv.Capturing(s.h)
}

// grapher is d's driver as one that has graphs.
func (d *Device) grapher(op string) (driver.Grapher, error) {
	drv, ok := d.drv.(driver.Grapher)
	if !ok {
		return nil, &Error{Op: op, Device: d.name, Err: ErrUnsupported, Hint: "the device has no graphs"}
	}
	return drv, nil
}
