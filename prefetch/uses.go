package prefetch

import (
	"slices"

	"github.com/leat-go/leat/device"
)

// usedOn is UsedOn; the caller holds the slot's lock.
func (g *stages) usedOn(w *window, stream *device.Stream) error {
	switch {
	case stream == nil:
		return errNoStream
	case stream == w.stream:
		return nil
	case g.computes.index(stream) >= 0:
		_, err := w.slot.beginWholeRead(stream)
		return err
	case !g.dev.PeerOf(stream.Device()):
		return &device.Error{Op: "UsedOn", Device: g.dev.Name(), Err: device.ErrUnsupported,
			Hint: stream.Device().Name() + " is no peer of it: copy through host memory"}
	}
	return w.usedBy(stream)
}

// usedBy makes a stream wait for the batch; its use ends with the batch's own. It waits
// for each batch anew, which also tells whether there still is such a stream. The caller
// holds the slot's lock.
func (w *window) usedBy(stream *device.Stream) error {
	again := slices.Contains(w.usedOn, stream)
	if !again && len(w.usedOn) == cap(w.usedOn) {
		return ErrMaxStreams
	}
	r, err := w.slot.beginReadLocked(stream)
	switch {
	case err != nil:
		return err
	case again:
		r.unrecorded-- // it ends once
	default:
		w.usedOn = append(w.usedOn, stream)
	}
	return nil
}

// endUses marks in the streams of a batch's UsedOn where its use ends. The newest Record
// of an event covers the older ones of the same stream, and the stream may be closed from
// here on. The caller holds the slot's lock.
func (w *window) endUses() error {
	var first error
	for _, stream := range w.usedOn {
		if err := w.slot.endReadLocked(w.slot.reads.by(stream)); err != nil && first == nil {
			first = err
		}
	}
	w.usedOn = w.usedOn[:0]
	return first
}
