package cuda

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/device/driver"
)

const streamNonBlocking = 1

// The handles that stand for the two default streams.
const (
	streamNull      = 0
	streamLegacy    = 1
	streamPerThread = 2
)

// A stream is made here or adopted.
type stream struct {
	name  string
	owned bool
	users atomic.Int32 // how often it was made or adopted, less how often freed
}

// NewStream makes a stream that does not synchronise with the legacy default
// stream, as one made without the flag would.
func (d *gpu) NewStream(c driver.StreamConfig) (driver.Stream, error) {
	p := d.clampPriority(c)
	g, err := d.enter("NewStream")
	if err != nil {
		return 0, err
	}
	r := g.call(d.cu.streamCreate, g.result0(), streamNonBlocking, uintptr(uint32(int32(p))))
	h := driver.Stream(g.handle())
	if err := g.leave(r); err != nil {
		return 0, err
	}
	s := &stream{name: c.Name, owned: true}
	s.users.Store(1)
	d.streams.put(h, s)
	return h, nil
}

func (d *gpu) clampPriority(c driver.StreamConfig) int {
	low, high := d.props.LowestPriority, d.props.HighestPriority
	p := min(max(c.Priority, high), low)
	if p != c.Priority {
		d.note(fmt.Sprintf("stream %q: priority %d is out of the range from %d (first) to %d (last); it has %d", c.Name, c.Priority, high, low, p))
	}
	return p
}

// AdoptStream makes a Stream of a CUstream of this device's primary context, which
// must stay alive until FreeStream. What is no CUstream at all crashes the driver.
func (d *gpu) AdoptStream(native uintptr) (driver.Stream, error) {
	const op = "AdoptStream"
	switch native {
	case streamNull, streamLegacy:
		return 0, d.invalid(op, "the legacy default stream waits for all streams of the device and they for it, so that nothing would overlap: make a stream with cuStreamCreate(…, CU_STREAM_NON_BLOCKING)")
	case streamPerThread:
		return 0, d.invalid(op, "the per-thread default stream is another stream on each OS thread, and goroutines move between threads: make a stream with cuStreamCreate(…, CU_STREAM_NON_BLOCKING)")
	}
	g, err := d.enter(op)
	if err != nil {
		return 0, err
	}
	var r result
	foreign := false
	if fn := d.cu.streamGetCtx; fn != 0 {
		r = g.call(fn, native, g.result0())
		foreign = r == success && g.handle() != d.ctx
	}
	if err := g.leave(r); err != nil {
		return 0, err
	}
	if foreign {
		return 0, d.invalid(op, "the stream belongs to another device or to a context other than the primary one")
	}
	d.adopt(driver.Stream(native))
	return driver.Stream(native), nil
}

// adopt counts one more user of h.
func (d *gpu) adopt(h driver.Stream) {
	d.streams.change(h, func(s *stream) *stream {
		if s == nil {
			s = &stream{name: fmt.Sprintf("native %#x", uintptr(h))}
		}
		s.users.Add(1)
		return s
	})
}

// FreeStream frees s when its last user does. Its work goes on.
func (d *gpu) FreeStream(h driver.Stream) error {
	const op = "FreeStream"
	if d.captured(op, h) {
		return d.spoil(op, driver.CaptureUnsupported, "the stream is captured")
	}
	s, last := d.releaseStream(h)
	if s == nil {
		return d.unknownStream(op)
	}
	if !last || !s.owned {
		return d.refused(op)
	}
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	return g.leave(g.call(d.cu.streamDestroy, uintptr(h)))
}

func (d *gpu) releaseStream(h driver.Stream) (s *stream, last bool) {
	d.streams.change(h, func(known *stream) *stream {
		s = known
		last = s != nil && s.users.Add(-1) == 0
		if last {
			return nil
		}
		return s
	})
	return s, last
}

func (d *gpu) StreamDone(s driver.Stream) (bool, error) {
	p, err := d.pendingStream("StreamDone", s)
	if err == nil {
		err = d.unguarded(p.op)
	}
	if err != nil {
		return false, err
	}
	return d.done(p)
}

func (d *gpu) SynchronizeStream(ctx context.Context, s driver.Stream) error {
	p, err := d.pendingStream("SynchronizeStream", s)
	if err == nil {
		err = d.unguarded(p.op)
	}
	if err != nil {
		return err
	}
	return d.await(ctx, p)
}

func (d *gpu) pendingStream(op string, h driver.Stream) (pending, error) {
	s := d.streams.get(h)
	if s == nil {
		return pending{}, d.unknownStream(op)
	}
	return pending{op, s.name, d.cu.streamQuery, d.cu.streamSynchronize, uintptr(h)}, nil
}

// enterStream begins a group that submits work to s.
func (d *gpu) enterStream(op string, h driver.Stream) (*group, error) {
	s := d.streams.get(h)
	if s == nil {
		return nil, d.unknownStream(op)
	}
	g, err := d.enter(op)
	if err == nil {
		g.name = s.name
	}
	return g, err
}

// unknownStream is the error for a handle that is not live. That of a device that
// has ended goes first: its handles may have been freed after it did.
func (d *gpu) unknownStream(op string) error {
	if err := d.refused(op); err != nil {
		return err
	}
	return d.invalid(op, "no such stream on this device: was it freed?")
}
