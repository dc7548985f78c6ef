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
	p      *Prefetcher
	err    error         // what Next returns for ever; guarded by p.turn
	left   chan struct{} // closed by Close, which wakes Next
	ended  chan struct{} // closed when Close has set err for good
	closed hold.Once
	// epoch is the one that it reads; begun says that a batch of it was delivered, or may have been.
	epoch int
	begun bool
	over  bool          // the epoch's end was reached,
	end   loader.Cursor // which is this
	// ahead is set for a reader whose batches count as delivered only later, when
	// their results are: it doesn't move the cursor.
	ahead    bool
	returned time.Time // when Next last returned a batch
}

// Open begins to read the rest of the current epoch. The contexts that samples are read
// under have ctx's values but don't end with it: to stop a wait, cancel Next's ctx. The
// caller owns the Reader until Close; a second one at the same time is ErrBusy.
func (p *Prefetcher) Open(ctx context.Context) (*Reader, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	defer p.turn.Unlock()
	r := &Reader{p: p, left: make(chan struct{}), ended: make(chan struct{})}
	if err := p.ready(ctx); err != nil {
		p.life.must(life.EndRead)
		if a, ok := err.(again); ok {
			return nil, a.error
		}
		return nil, p.notes.news(err)
	}
	r.epoch = p.Epoch()
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

func (r *Reader) take(ctx context.Context, wait bool) (Batch, error) {
	b, err := r.next(ctx, wait)
	switch {
	case err == nil:
		b.window.history.take(3)
	case err == errEpochOver:
		err = ErrEpochEnd
	default:
		err = disown(err)
	}
	return b, err
}

func (r *Reader) next(ctx context.Context, wait bool) (Batch, error) {
	p := r.p
	select {
	case <-r.ended: // others may read by now
		return Batch{}, r.err
	default:
	}
	for !p.turn.TryLockAs(byNext) {
		if err := p.mayRead(ctx); err != nil { // it is Close
			return Batch{}, err
		}
		select {
		case <-r.left:
			return Batch{}, ErrClosed
		default:
		}
		if p.turn.Holder() == byNext {
			return Batch{}, ErrBusy
		}
		select {
		case <-p.turn.Opened():
		case <-ctx.Done():
		}
	}
	defer p.turn.Unlock()
	if r.err != nil {
		return Batch{}, r.err
	}
	p.resume()
	w, err := r.receive(ctx, wait)
	switch e := err.(type) {
	case nil:
		return Batch{p: p, window: w, generation: w.generation()}, nil
	case *LeaseError:
		return Batch{}, e
	case again:
		return Batch{}, e.error
	}
	p.notes.told(err)
	r.err = p.notes.news(err)
	if !r.ahead {
		p.place.claim.Reported(r.err)
	}
	return Batch{}, r.err
}

// receive waits for the next batch of the epoch, and gives it to the user.
func (r *Reader) receive(ctx context.Context, wait bool) (*window, error) {
	p := r.p
	for started := false; ; {
		if err := p.mayRead(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, again{err}
			}
			return nil, err
		}
		if p.run == nil {
			if started || r.epoch != p.Epoch() || p.place.finished() {
				return nil, errEpochOver
			}
			if err := p.ready(ctx); err != nil {
				return nil, err
			}
			started = true
		}
		w, err := r.wait(ctx, wait)
		switch {
		case err == nil:
			return w, r.deliver(ctx, w)
		case err == errRunOver:
			if err := p.stop(); err != nil {
				return nil, err
			}
		case err != errEpochOver:
			return nil, err
		case p.run.epoch <= r.epoch: // it was over when the last reader left it
		case r.begun || p.place.at() == loader.Cursor{Epoch: r.epoch}:
			r.over, r.end = true, p.run.at
			r.move(r.end)
			return nil, err
		default: // nobody knew that the cursor was behind the last of the samples
			p.place.move(p.run.at)
			r.epoch = p.run.epoch
			if p.place.finished() {
				return nil, err
			}
		}
	}
}

// wait waits for the next thing that the run has, and counts the time.
func (r *Reader) wait(ctx context.Context, wait bool) (*window, error) {
	p := r.p
	if !wait && !p.run.atEnd && !p.run.ready() && p.stages.allHeld() {
		return nil, leaseError(p.stages.windows)
	}
	from := time.Now()
	r.endBody(from)
	now := from
	w, err, there := p.run.poll()
	if !there {
		p.run.batches.Attended(true)
		w, err = p.run.next(ctx, r.left, p.closed)
		p.run.batches.Attended(false)
		now = time.Now()
	}
	if !there || len(p.run.waits) > 0 {
		p.run.waited(span{from, now}, w, err)
	}
	if w != nil {
		r.returned = now
	}
	return w, err
}

// endBody counts the time since the last batch as the user's.
func (r *Reader) endBody(now time.Time) {
	if !r.returned.IsZero() {
		r.p.stages.counters.body.Add(int64(now.Sub(r.returned)))
		r.returned = time.Time{}
	}
}

// deliver gives a batch to the user.
func (r *Reader) deliver(ctx context.Context, w *window) error {
	p, g := r.p, r.p.stages
	if err := p.run.handOver(ctx, r.left, w); err != nil {
		if _, later := err.(again); later {
			p.run.head = w
			r.returned = time.Time{}
			return err
		}
		return joined(err, g.discard(w))
	}
	if g.dev == nil && w.slot != nil {
		r.returned = time.Now() // it may have waited for the transform
	}
	if err := w.lend(g.sizes.out); err != nil {
		return joined(err, g.discard(w))
	}
	if _, err := p.life.step(life.Lend); err != nil { // Close was faster
		return joined(err, g.discard(w))
	}
	w.step(life.Deliver)
	if w.slot != nil {
		w.slot.delivered()
	}
	g.counters.delivered(w)
	after := p.place.claim.Normalize(w.batch.After)
	p.run.taken(w, after)
	r.begun = true
	r.move(after)
	return nil
}

// move moves the cursor (P5).
func (r *Reader) move(after loader.Cursor) {
	if !r.ahead {
		r.p.place.move(after)
	}
}

// Close ends the reading, and a Next that waits: it returns ErrClosed. What was read ahead
// is kept for the next reader. Batches not released stay valid. A call during another
// waits for it and returns its error, one after it returns nil.
func (r *Reader) Close() error { return r.close(false) }

// close is Close; cancelled says that the producers are to stop.
func (r *Reader) close(cancelled bool) error {
	return r.closed.Do(func() error {
		defer r.p.life.must(life.EndRead)
		return r.stop(cancelled)
	})
}

// stop is close that lets nobody else in yet.
func (r *Reader) stop(cancelled bool) error {
	p := r.p
	close(r.left)
	p.turn.Lock()
	defer p.turn.Unlock()
	r.endBody(time.Now())
	failed := r.err != nil && r.err != errEpochOver
	if r.err == nil {
		r.err = ErrClosed
	}
	close(r.ended)
	keep := !cancelled && !failed && p.run != nil && !p.run.over && p.run.at == p.place.at()
	if p.place.finished() || r.err == errEpochOver && !p.stages.ahead {
		keep = false // the run is at its end
	}
	if keep {
		return nil
	}
	return unlessTold(p.stop(), r.err)
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

// allHeld reports whether the user holds so much that nothing more can come.
func (g *stages) allHeld() bool {
	if g.ring != nil {
		return g.ring.held()
	}
	leased := leased(g.windows)
	// Without any it is for the pool to say what is wrong.
	return leased > 0 && leased == len(g.windows)-int(g.pinned.late.Load())
}

func leaseError(windows []*window) error {
	taken := outstanding(windows)
	return &LeaseError{Outstanding: len(taken), Taken: taken}
}
