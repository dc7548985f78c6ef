package prefetch

import (
	"context"
	"time"

	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

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

// endBody counts the time since the last batch as the user's.
func (r *Reader) endBody(now time.Time) {
	if !r.returned.IsZero() {
		body := now.Sub(r.returned)
		r.ahead.stages.counters.body.Add(int64(body))
		r.returned = time.Time{}
		r.tell(now, body)
	}
}

// needRun starts a run if there is none: the last reader may have left at the place where
// its run was over. It does so once, and notes that.
func (r *Reader) needRun(ctx context.Context, started *bool) error {
	a := r.ahead
	if err := a.mayRead(ctx); err != nil {
		if ctx.Err() != nil {
			return again{err}
		}
		return err
	}
	if a.run != nil {
		return nil
	}
	if *started || r.epoch != a.place.at().Epoch || a.place.finished() {
		return errEpochOver
	}
	*started = true
	return a.ensureRun(ctx)
}

// endEpoch is errEpochOver if the end that the run has come to is that of the Reader's epoch.
func (r *Reader) endEpoch() error {
	a := r.ahead
	switch {
	case a.run.epoch <= r.epoch: // an earlier epoch's end, which the last reader left in the run
		return nil
	case r.begun || a.place.at() == loader.Cursor{Epoch: r.epoch}:
		r.epochEnded, r.epochEnd = true, a.run.at
		r.move(r.epochEnd)
		return errEpochOver
	}
	// Nobody knew that the cursor was behind the last of the samples.
	a.place.move(a.run.at)
	r.epoch = a.run.epoch
	if a.place.finished() {
		return errEpochOver
	}
	return nil
}
