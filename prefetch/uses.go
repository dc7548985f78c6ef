package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/slots"
)

// UsedOn makes work submitted to stream from now on wait for the batch's copy, and
// the next copy into its memory wait for what was submitted to stream until Release.
// From Release on the stream may be closed. The batch's own Stream needs no UsedOn.
//
// A stream of another device will do where the two are peers (device.Device.PeerOf).
// Other ones, closed ones, and more than Options.Streams.Max allows, are refused with a
// *StreamError. UsedOn may be called while another goroutine releases the batch: it
// takes place before that, or panics as every method of a released batch does.
func (b Batch) UsedOn(stream *device.Stream) error {
	w := b.use("UsedOn")
	g := b.p.stages
	if g.dev == nil {
		return errors.New("prefetch: UsedOn: the batch is in host memory, and no stream orders its reuse")
	}
	w.slot.Lock()
	defer w.slot.Unlock()
	b.use("UsedOn") // again: a Release from here on waits for the lock before it ends the uses
	err := g.usedOn(w, stream)
	if err == nil {
		return nil
	}
	if err == slots.ErrUses {
		err = fmt.Errorf("%w (%d)", ErrMaxStreams, g.sizes.options.Streams.Max)
	}
	e := &StreamError{Position: w.position(), Err: err}
	if stream != nil {
		e.Stream = stream.Name()
	}
	return e
}

// usedOn is UsedOn; the caller holds the slot's lock.
func (g *stages) usedOn(w *window, stream *device.Stream) error {
	switch {
	case stream == nil:
		return errNoStream
	case stream == w.stream:
		return nil
	case g.computes.Index(stream) >= 0:
		return w.slot.UseWholeLocked(stream)
	case !g.dev.PeerOf(stream.Device()):
		return &device.Error{Op: "UsedOn", Device: g.dev.Name(), Err: device.ErrUnsupported,
			Hint: stream.Device().Name() + " is no peer of it: copy through host memory"}
	}
	return w.slot.UseLocked(&w.usedOn, stream)
}
