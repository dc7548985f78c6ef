package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// A Reader is the pull form of Batches, for callers that need several batches at once
// (gradient accumulation) or adapt them to another interface. It covers what is
// left of one epoch. One goroutine calls Next or WaitNext; any may call Close.
type Reader struct {
	p         *Prefetcher   // whose batches it returns
	ahead     *lookahead    // p's
	err       error         // what Next returns for ever; guarded by ahead.turn
	closing   chan struct{} // closed by Close, which wakes Next
	ended     chan struct{} // closed when Close has set err for good
	closeOnce hold.Once
	// epoch is the one that it reads; begun says that a batch of it was delivered, or may have been.
	epoch      int
	begun      bool
	epochEnded bool
	epochEnd   loader.Cursor // once epochEnded
	// forMap is set for a Map's reader, whose batches count as delivered only later, when
	// their results are: it doesn't move the cursor.
	forMap   bool
	returned time.Time // when Next last returned a batch
}

// Open begins to read the rest of the current epoch. The contexts that samples are read
// under have ctx's values but don't end with it: to stop a wait, cancel Next's ctx. The
// caller owns the Reader until Close; a second one at the same time is ErrBusy.
func (p *Prefetcher) Open(ctx context.Context) (*Reader, error) {
	a := &p.ahead
	if err := a.begin(); err != nil {
		return nil, err
	}
	defer a.turn.Unlock()
	r := &Reader{p: p, ahead: a, closing: make(chan struct{}), ended: make(chan struct{})}
	if err := a.ensureRun(ctx); err != nil {
		a.life.must(life.EndRead)
		if e, ok := err.(again); ok {
			return nil, e.error
		}
		return nil, a.notes.news(err)
	}
	r.epoch = a.place.at().Epoch
	return r, nil
}

// Next returns the next batch, which the caller owns until Release. Behind the
// epoch's last batch it returns ErrEpochEnd, and from then on. If the caller holds
// every slot it returns a *LeaseError at once, and if ctx ends its cause: then nothing
// is lost, and it may be called again. After any other error the Reader is at its end,
// and the cursor behind the last batch delivered.
//
// errors.Is finds ErrEpochEnd and ErrLeases only where they are Next's own, also if an
// error of the user's, who reads from another pipeline perhaps, wraps them.
func (r *Reader) Next(ctx context.Context) (Batch, error) { return r.take(ctx, false) }

// WaitNext is Next for batches that other goroutines release: while every slot is
// held it waits for them, until ctx ends or the Prefetcher is closed. With nobody to
// release one it waits for ever.
func (r *Reader) WaitNext(ctx context.Context) (Batch, error) { return r.take(ctx, true) }

// take is next for a caller outside of this package: the lease says which line took it, and
// the end of an epoch is the public error.
func (r *Reader) take(ctx context.Context, wait bool) (Batch, error) {
	b, err := r.next(ctx, wait)
	switch {
	case err == nil:
		b.window.history.take(3) // past itself, take and Next
	case err == errEpochOver:
		err = ErrEpochEnd
	default:
		err = disown(err)
	}
	return b, err
}

// next is Next, or with wait WaitNext, for a range or a Map.
func (r *Reader) next(ctx context.Context, wait bool) (Batch, error) {
	a := r.ahead
	select {
	case <-r.ended: // others may read by now
		return Batch{}, r.err
	default:
	}
	if !a.turn.TryLockAs(byNext) {
		if err := r.waitForTurn(ctx); err != nil {
			return Batch{}, err
		}
	}
	defer a.turn.Unlock()
	if r.err != nil {
		return Batch{}, r.err
	}
	a.resume()
	w, err := r.receive(ctx, wait)
	switch e := err.(type) {
	case nil:
		return Batch{p: r.p, window: w, generation: w.generation()}, nil
	case *LeaseError:
		return Batch{}, e
	case again:
		return Batch{}, e.error
	}
	a.notes.told(err)
	r.err = a.notes.news(err)
	if !r.forMap {
		a.place.claim.Reported(r.err)
	}
	return Batch{}, r.err
}

// waitForTurn takes the turn from a call that has it and is no Next: a Quiesce, which ends by
// itself, or a Close, of which the caller is told.
func (r *Reader) waitForTurn(ctx context.Context) error {
	a := r.ahead
	for !a.turn.TryLockAs(byNext) {
		if err := a.mayRead(ctx); err != nil {
			return err
		}
		select {
		case <-r.closing:
			return ErrClosed
		default:
		}
		if a.turn.Holder() == byNext { // it may wait for long
			return ErrBusy
		}
		select {
		case <-a.turn.Opened():
		case <-ctx.Done():
		}
	}
	return nil
}

// receive waits for the next batch of the epoch, and gives it to the user. It starts a run
// if there is none: the last reader may have left at the place where its run was over.
func (r *Reader) receive(ctx context.Context, wait bool) (*window, error) {
	a := r.ahead
	for started := false; ; {
		if err := a.mayRead(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, again{err}
			}
			return nil, err
		}
		if a.run == nil {
			if started || r.epoch != a.place.at().Epoch || a.place.finished() {
				return nil, errEpochOver
			}
			if err := a.ensureRun(ctx); err != nil {
				return nil, err
			}
			started = true
		}
		w, err := r.wait(ctx, wait)
		switch {
		case err == nil:
			return w, r.deliver(ctx, w)
		case err == errRunOver:
			if err := a.stop(); err != nil {
				return nil, err
			}
		case err != errEpochOver:
			return nil, err
		case a.run.epoch <= r.epoch: // an earlier epoch's end, which the last reader left in the run
		case r.begun || a.place.at() == loader.Cursor{Epoch: r.epoch}:
			r.epochEnded, r.epochEnd = true, a.run.at
			r.move(r.epochEnd)
			return nil, err
		default: // nobody knew that the cursor was behind the last of the samples
			a.place.move(a.run.at)
			r.epoch = a.run.epoch
			if a.place.finished() {
				return nil, err
			}
		}
	}
}

// wait waits for the next thing that the run has, and counts the time.
func (r *Reader) wait(ctx context.Context, wait bool) (*window, error) {
	a := r.ahead
	if !wait && !a.run.atEnd && !a.run.hasNext() && a.stages.allHeld() {
		return nil, leaseError(a.stages.windows)
	}
	from := time.Now()
	r.endBody(from)
	now := from
	w, err, there := a.run.poll()
	if !there {
		a.run.batches.Attended(true)
		w, err = a.run.next(ctx, r.closing, a.closed)
		a.run.batches.Attended(false)
		now = time.Now()
	}
	if !there || len(a.run.waits) > 0 {
		a.run.waited(span{from, now}, w, err)
	}
	if w != nil {
		r.returned = now
	}
	return w, err
}

// endBody counts the time since the last batch as the user's.
func (r *Reader) endBody(now time.Time) {
	if !r.returned.IsZero() {
		r.ahead.stages.counters.body.Add(int64(now.Sub(r.returned)))
		r.returned = time.Time{}
	}
}

// deliver gives a batch to the user.
func (r *Reader) deliver(ctx context.Context, w *window) error {
	a, g := r.ahead, r.ahead.stages
	if err := a.run.handOver(ctx, r.closing, w); err != nil {
		if _, later := err.(again); later {
			a.run.head = w
			r.returned = time.Time{}
			return err
		}
		return joined(err, g.discard(w))
	}
	if g.dev == nil && w.slot != nil {
		r.returned = time.Now() // it may have waited for the transform
	}
	if err := w.isolate(g.sizes.out); err != nil {
		return joined(err, g.discard(w))
	}
	if _, err := a.life.step(life.Lend); err != nil { // Close was faster
		return joined(err, g.discard(w))
	}
	w.step(life.Deliver)
	if w.slot != nil {
		w.slot.delivered()
	}
	g.counters.delivered(w)
	after := a.place.claim.Normalize(w.batch.After)
	a.run.taken(w, after)
	r.begun = true
	r.move(after)
	return nil
}

// move moves the cursor (P5).
func (r *Reader) move(after loader.Cursor) {
	if !r.forMap {
		r.ahead.place.move(after)
	}
}

// Close ends the reading, and a Next that waits: it returns ErrClosed. What was read ahead
// is kept for the next reader. Batches not released stay valid. A call during another
// waits for it and returns its error, one after it returns nil.
func (r *Reader) Close() error { return r.close(false) }

// close is Close; cancelled says that the producers are to stop.
func (r *Reader) close(cancelled bool) error {
	return r.closeOnce.Do(func() error {
		defer r.ahead.life.must(life.EndRead)
		return r.stop(cancelled)
	})
}

// stop is close that lets nobody else in yet.
func (r *Reader) stop(cancelled bool) error {
	a := r.ahead
	close(r.closing)
	a.turn.Lock()
	defer a.turn.Unlock()
	r.endBody(time.Now())
	failed := r.err != nil && r.err != errEpochOver
	if r.err == nil {
		r.err = ErrClosed
	}
	close(r.ended)
	if !cancelled && !failed && r.leavesMore() {
		return nil // the run goes on for the next reader
	}
	return unlessTold(a.stop(), r.err)
}

// leavesMore reports whether there is a run that a next reader goes on with: it stands at
// the cursor, and has more to give. The caller holds ahead.turn.
func (r *Reader) leavesMore() bool {
	a := r.ahead
	switch {
	case a.run == nil || a.run.over || a.place.finished():
		return false
	case r.err == errEpochOver && !a.stages.acrossEpochs:
		return false // it ends with the epoch
	}
	return a.run.at == a.place.at() // another place is behind results of a Map that nobody got
}

// unlessTold is err, or nil if it is a stage that hangs and the user has been told so.
func unlessTold(err, told error) error {
	_, stuck := err.(*loader.StuckError)
	_, known := told.(*loader.StuckError)
	if stuck && known {
		return nil
	}
	return err
}
