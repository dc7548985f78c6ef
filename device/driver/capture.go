package driver

import (
	"errors"
	"fmt"
)

// ErrCapture: a graph capture forbids the call, or has failed. The error has a
// CaptureError too, which says how.
var ErrCapture = errors.New("graph capture")

// CaptureError is what a call in, or beside, a graph capture did wrong. They are CUDA's.
type CaptureError uint8

// The CaptureErrors.
const (
	// CaptureUnsupported: the call is not allowed in a capture, or by who captures.
	CaptureUnsupported CaptureError = iota + 1
	// CaptureInvalidated: an earlier call has spoilt the capture.
	CaptureInvalidated
	// CaptureMerge: a wait would join two captures.
	CaptureMerge
	// CaptureUnmatched: no capture began on the stream.
	CaptureUnmatched
	// CaptureUnjoined: a stream that was forked off was not joined again: what it did
	// last is not behind the stream on which the capture began.
	CaptureUnjoined
	// CaptureIsolation: captured work would wait for work outside.
	CaptureIsolation
	// CaptureImplicit: the legacy default stream would wait for captured work.
	CaptureImplicit
	// CapturedEvent: the event's newest Record is in a capture, and so never completes.
	CapturedEvent
	// CaptureWrongThread: the capture began on another goroutine.
	CaptureWrongThread
	// CaptureActive: the stream is being captured already.
	CaptureActive
)

var captureErrors = [...]string{
	CaptureUnsupported: "the call is not allowed in a graph capture",
	CaptureInvalidated: "an earlier call has invalidated the graph capture",
	CaptureMerge:       "two graph captures would become one",
	CaptureUnmatched:   "no graph capture began on this stream",
	CaptureUnjoined:    "a stream forked off in the graph capture was not joined again",
	CaptureIsolation:   "work in a graph capture would wait for work outside of it",
	CaptureImplicit:    "the legacy default stream would wait for a graph capture",
	CapturedEvent:      "the event was last recorded in a graph capture",
	CaptureWrongThread: "the graph capture began on another goroutine",
	CaptureActive:      "the stream is in a graph capture already",
}

func (e CaptureError) Error() string {
	if int(e) >= len(captureErrors) || e == 0 {
		return fmt.Sprintf("driver.CaptureError(%d)", uint8(e))
	}
	return captureErrors[e]
}

// Is reports whether target is ErrCapture.
func (e CaptureError) Is(target error) bool { return target == ErrCapture }
