package prefetch

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// handOver gives a batch to a compute stream, or waits until a host consumer can read it.
func (r *run) handOver(ctx context.Context, closing <-chan struct{}, w *window) error {
	g := r.stages
	switch {
	case w.slot == nil:
		return nil
	case g.dev != nil:
		return g.giveToCompute(w)
	}
	if err := r.arrived(ctx, closing, w.slot.filled); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	return g.host.HostWrites(w.host) // what the consumer may do
}

// giveToCompute gives a batch to a compute stream: work submitted to it from now on waits for
// the batch. It is called when the batch is delivered and no sooner (P3). What a stream
// has waited for it need not wait for again.
func (g *stages) giveToCompute(w *window) error {
	s := w.slot
	w.stream = g.computes.next(g.ring)
	if err := g.timeline.Reached(w.stream, s.mark); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.beginWholeRead(w.stream)
	if err == nil {
		r.batches++
	}
	return err
}

// beginWholeRead is beginReadLocked for a compute stream, whose read lasts until the slot is handed back.
// The caller holds s.mu.
func (s *slot) beginWholeRead(compute *device.Stream) (*read, error) {
	if r := s.reads.by(compute); r != nil {
		return r, nil
	}
	r, err := s.beginReadLocked(compute)
	if err == nil {
		r.whole = true
	}
	return r, err
}

// arrived waits on the host for what a host consumer's transform has written, until ctx
// or the run ends, or the Reader is closed.
func (r *run) arrived(ctx context.Context, closing <-chan struct{}, filled *device.Event) error {
	if done, err := filled.Done(); done || err != nil {
		return err
	}
	defer func(from time.Time) { r.stages.counters.device.Add(int64(time.Since(from))) }(time.Now())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-closing:
			cancel(ErrClosed)
		case <-over:
		}
	}()
	if err := filled.Synchronize(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

// handBack notes that a batch is done with. The last one hands its slot back, and only
// when that has returned is it the uploader's (P1).
func (g *stages) handBack(w *window, delivered bool) error {
	s := w.slot
	s.mu.Lock()
	err := w.endUses()
	s.unreturned--
	if !delivered {
		s.undelivered--
	}
	last := s.unreturned == 0
	if last {
		err = errors.Join(err, s.endWholeReads())
	}
	s.failed = s.failed || err != nil
	failed := s.failed
	s.mu.Unlock()
	if last {
		g.ring.back(s, failed)
	}
	return err
}

// endWholeReads marks in every compute stream that read the slot where that ends. The caller
// holds s.mu.
func (s *slot) endWholeReads() (err error) {
	for i := range s.reads.list {
		if r := &s.reads.list[i]; r.whole {
			err = errors.Join(err, s.endReadLocked(r))
		}
	}
	return err
}

// discard takes back a batch that was ready and is not delivered: its memory is free at
// once, since what is written there next is behind the last on the same stream.
func (g *stages) discard(w *window) error {
	w.step(life.Discard)
	if w.slot == nil {
		g.pinned.Put(loader.Slot{ID: w.id})
		return nil
	}
	return g.handBack(w, false)
}
