package device

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/device/internal/goid"
)

// Work that the body of a Capture submits to a stream that is not captured runs at once,
// and is missing from the graph: it would run at the capture and at no launch. No driver
// minds. Nobody who captures a step means it, so it is refused here.

// bodies are those of the captures of a device. While there are none a call pays for one
// atomic load. While there are, calls on captured streams pay for a question to the driver,
// and others for one to the runtime: who is it that calls?
type bodies struct {
	active  atomic.Int32
	spoiled atomic.Int32 // of those, with a call that was refused

	mu   sync.Mutex
	list []*body
}

// A body is one under way.
type body struct {
	owner  uint64 // the goroutine
	astray error  // the first call that was refused, nil if none was
}

func (bs *bodies) begin() *body {
	b := &body{owner: goid.Current()}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.list = append(bs.list, b)
	bs.active.Add(1)
	return b
}

// end is the first call of b that was refused.
func (bs *bodies) end(b *body) error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.list = slices.DeleteFunc(bs.list, func(o *body) bool { return o == b })
	bs.active.Add(-1)
	if b.astray != nil {
		bs.spoiled.Add(-1)
	}
	return b.astray
}

// own is why the capture of the calling goroutine fails, nil if it doesn't yet; false if
// the goroutine captures nothing.
func (bs *bodies) own() (astray error, capturing bool) {
	who := goid.Current()
	bs.mu.Lock()
	defer bs.mu.Unlock()
	i := slices.IndexFunc(bs.list, func(b *body) bool { return b.owner == who })
	if i < 0 {
		return nil, false
	}
	return bs.list[i].astray, true
}

// spoil makes the captures of the calling goroutine fail by err.
func (bs *bodies) spoil(err error) {
	who := goid.Current()
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for _, b := range bs.list {
		if b.owner == who && b.astray == nil {
			b.astray = err
			bs.spoiled.Add(1)
		}
	}
}

// submits refuses op on a closed stream, and in a capture's body on one that isn't
// captured.
func (s *Stream) submits(op string) error {
	if err := s.open(op); err != nil {
		return err
	}
	return s.within(op)
}

// within refuses op, by a goroutine that captures, on a stream that isn't captured.
func (s *Stream) within(op string) error {
	bs := &s.dev.bodies
	if bs.active.Load() == 0 {
		return nil
	}
	captured, asked := s.Capturing()
	if captured && bs.spoiled.Load() == 0 {
		return nil
	}
	before, capturing := bs.own()
	switch {
	case !capturing:
		return nil
	case before != nil:
		return s.spoilt(op, before)
	case captured || asked != nil:
		return asked
	}
	err := &Error{Op: op, Device: s.dev.name, Err: CaptureUnsupported, Hint: fmt.Sprintf(
		"stream %q is not captured, so that this would happen now and at no launch of the graph: use the captured stream, or wait for an event that is recorded in it", s.name)}
	bs.spoil(err)
	return err
}

// spoilt is the error of op in a capture that an earlier call has spoilt, or at its end.
func (s *Stream) spoilt(op string, astray error) error {
	return &Error{Op: op, Device: s.dev.name, Err: CaptureInvalidated, Hint: astray.Error()}
}
