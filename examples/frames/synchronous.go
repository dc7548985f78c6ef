package main

import "context"

// synchronous is the way of a first draft: a frame is made, uploaded, filtered,
// downloaded and checked, and after each of these operations the host waits until
// the device has done it.
type synchronous struct {
	*bench
	slot *slot
}

func newSynchronous(b *bench) (way, error) {
	s, err := b.newSlot()
	return &synchronous{b, s}, err
}

func (w *synchronous) run(ctx context.Context, n int, check func(int, planes)) error {
	for frame := range n {
		if err := w.frame(ctx, frame); err != nil {
			return err
		}
		check(frame, w.slot.planes())
	}
	return nil
}

// frame leaves a frame in the slot's in and its result in out.
func (w *synchronous) frame(ctx context.Context, frame int) error {
	s := w.slot
	w.prepare(s.in.Bytes(), frame)
	if err := w.compute.CopyH2D(s.frame.View(), s.in.Bytes()); err != nil {
		return err
	}
	if err := w.compute.Synchronize(ctx); err != nil {
		return err
	}
	if err := w.filter.Apply(w.compute, s.views(), s.frame.View()); err != nil {
		return err
	}
	if err := w.compute.Synchronize(ctx); err != nil {
		return err
	}
	if err := w.compute.CopyD2H(s.out.Bytes(), s.result.View()); err != nil {
		return err
	}
	return w.compute.Synchronize(ctx)
}

func (w *synchronous) close() error { return w.release(w.slot) }
