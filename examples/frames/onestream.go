package main

import (
	"context"
	"errors"
	"time"
)

// oneStream is the way of a second draft: all of a frame's work is queued at once,
// and while the device does it the host makes the next frames. On the device one
// thing still follows the other.
type oneStream struct {
	*bench
	slots []*slot
}

// oneStreamSlots is as many as let the host work ahead and the device never wait.
const oneStreamSlots = 3

func newOneStream(b *bench) (way, error) {
	w := &oneStream{bench: b}
	for range oneStreamSlots {
		s, err := b.newSlot()
		if err != nil {
			return w, errors.Join(err, w.close())
		}
		w.slots = append(w.slots, s)
	}
	return w, nil
}

func (w *oneStream) run(ctx context.Context, n int, check func(int, planes)) error {
	for i := range n + len(w.slots) {
		s := w.slots[i%len(w.slots)]
		if frame := i - len(w.slots); frame >= 0 && frame < n {
			if err := s.done.Synchronize(ctx); err != nil {
				return err
			}
			check(frame, s.planes())
		}
		if i < n {
			if err := w.submit(s, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *oneStream) submit(s *slot, frame int) error {
	w.prepare(s.in.Bytes(), frame)
	if err := w.compute.CopyH2D(s.frame.View(), s.in.Bytes()); err != nil {
		return err
	}
	if err := w.filter.Apply(w.compute, s.views(), s.frame.View()); err != nil {
		return err
	}
	if err := w.compute.CopyD2H(s.out.Bytes(), s.result.View()); err != nil {
		return err
	}
	return w.compute.Record(s.done)
}

func (w *oneStream) close() error { return w.release(w.slots...) }

// release frees slots when the device has come to rest.
func (b *bench) release(slots ...*slot) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := b.dev.Synchronize(ctx); err != nil {
		return err // what may be in use is not freed
	}
	var errs []error
	for _, s := range slots {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
