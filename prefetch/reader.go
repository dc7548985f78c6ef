package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
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
	telling  telling
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
		b.window.history.Take(3) // past itself, take and Next
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
	if err := a.lockForNext(ctx, r.closing); err != nil {
		return Batch{}, err
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

// receive waits for the next batch of the epoch, and gives it to the user.
func (r *Reader) receive(ctx context.Context, wait bool) (*window, error) {
	for started := false; ; {
		if err := r.needRun(ctx, &started); err != nil {
			return nil, err
		}
		w, err := r.wait(ctx, wait)
		switch err {
		case nil:
			return w, r.deliver(ctx, w)
		case errRunOver:
			err = r.ahead.stop()
		case errEpochOver:
			err = r.endEpoch()
		}
		if err != nil {
			return nil, err
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
		w, err = a.run.next(ctx, r.closing, a.closed)
		now = time.Now()
	}
	var of journal.Parts
	if !there || len(a.run.waits) > 0 {
		of = a.run.waited(span{from, now}, w, err)
	}
	r.waited(from, of, w, err)
	if w != nil {
		r.returned = now
	}
	return w, err
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
	if _, err := a.life.step(life.Lend); err != nil { // Close was faster
		return joined(err, g.discard(w))
	}
	w.step(life.Deliver)
	if w.slot != nil {
		w.slot.Delivered()
	}
	g.counters.delivered(w)
	r.tellDelivered(w)
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
