package prefetch

import (
	"context"
	"errors"
	"time"

	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/observe/journal"
)

// A run works ahead of the reader, from a place on: the loader's goroutines, which fill
// pinned buffers, and the uploader. It lasts, over epochs and while nobody reads, until
// the epochs end, something fails, or stop joins it.
type run struct {
	stages  *stages
	batches *loader.Run
	ctx     context.Context // the producers' and the uploader's, ended by cancel
	cancel  context.CancelCauseFunc

	// items are the uploaded batches in order; a nil one is an epoch's end. The uploader
	// closes it when it ends, after it has set err.
	items   chan *window
	err     error
	drained hold.Alarm // the reader tells the uploader that it has taken all of them

	counted bool // what the producers did is counted; guarded by the counters' lock

	// The uploader's own.
	gathered  []loader.Filled // for the next upload
	uploading uploading
	filled    time.Time // the latest time at which a batch was filled, of those gathered

	// The reader's own.
	at    loader.Cursor // behind what the reader has taken
	epoch int           // of the batch to come
	atEnd bool          // the epoch's last batch is taken, its end not yet
	head  *window       // taken from items, not delivered: the caller's context ended
	over  bool          // there is nothing more to take
	late  time.Duration // for which a host consumer waited for the transform of the batch to come
	waits []span        // for the batch to come, which their callers did not wait for to the end
}

var errStopped = errors.New("prefetch: stopped")

// How a run ends without a failure. No user gets hold of these: an error of theirs, or
// the cause that they end a context with, may wrap ErrEpochEnd or be it, and is an error
// all the same.
var (
	errEpochOver = errors.New("prefetch: the epoch is over")
	errRunOver   = errors.New("prefetch: the run is over")
)

// again is the end of the caller's own context: nothing is lost, and the call may be made
// again.
type again struct{ error }

// startRun makes a run at a place. Samples are read under contexts that have ctx's values
// and don't end with it.
func startRun(ctx context.Context, g *stages, claim loader.Claim, at loader.Cursor) *run {
	r := &run{stages: g, at: at, epoch: at.Epoch}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	r.batches = claim.Start(r.ctx, at, g.memory, g.sizes.options.Recorder)
	r.batches.Attended(false)
	r.items = make(chan *window, 2*len(g.windows)+1) // before each there may be an epoch's end
	r.drained = hold.NewAlarm()
	if g.ring != nil {
		g.ring.StartWatching(r.ctx)
	}
	go r.uploadAll() // ends when the loader does or r.ctx; join waits for it
	return r
}

// join discards what was uploaded until the uploader has ended, and then ends the
// producers. All that it waits for ends with its context, except for a Transform that
// does not return and a copy from memory that isn't pinned, which waits for compute: that
// it is in one is the error after the limits, if there are any.
func (r *run) join(limits *limits) error {
	if w := r.head; w != nil {
		r.head = nil
		r.discard(w)
	}
	var inApply, inCopy <-chan time.Time
	if limits != nil {
		inApply, inCopy = limits.begin()
		defer limits.end()
	}
	for {
		select {
		case w, ok := <-r.items:
			if !ok {
				if r.stages.ring != nil {
					r.stages.ring.StopWatching()
				}
				return nil
			}
			if w != nil {
				r.discard(w)
			}
		case <-inApply:
			if err := r.stages.transform.visit.Stuck("Transform.Apply", limits.apply); err != nil {
				return err
			}
		case <-inCopy:
			if r.stages.pinned.copying.Load() {
				return &CloseError{HostSlots: true, Err: errPageable}
			}
		}
	}
}

// discard takes back a batch that is not delivered.
func (r *run) discard(w *window) {
	if err := r.stages.discard(w); err != nil {
		r.cancel(err)
	}
}

// limits are how long join waits.
type limits struct {
	apply, copy     time.Duration // 0: no limit
	inApply, inCopy *time.Ticker
}

func (l *limits) begin() (apply, copy <-chan time.Time) {
	if l.apply > 0 {
		l.inApply = time.NewTicker(l.apply)
		apply = l.inApply.C
	}
	if l.copy > 0 {
		l.inCopy = time.NewTicker(l.copy)
		copy = l.inCopy.C
	}
	return apply, copy
}

func (l *limits) end() {
	for _, t := range []*time.Ticker{l.inApply, l.inCopy} {
		if t != nil {
			t.Stop()
		}
	}
}

// next waits for the next batch, until ctx ends, or the Reader or the Prefetcher is
// closed. At an epoch's end the error is errEpochOver, behind all that the run gives
// errRunOver.
func (r *run) next(ctx context.Context, closing, closed <-chan struct{}) (*window, error) {
	r.batches.Attended(true)
	defer r.batches.Attended(false)
	select {
	case w, ok := <-r.items:
		return r.interpret(w, ok)
	case <-ctx.Done():
		return nil, again{context.Cause(ctx)}
	case <-closing:
		return nil, ErrClosed
	case <-closed:
		return nil, ErrClosed
	}
}

// hasNext reports whether next need not wait.
func (r *run) hasNext() bool { return r.head != nil || len(r.items) > 0 }

// poll is next, if that need not wait.
func (r *run) poll() (w *window, err error, there bool) {
	if w := r.head; w != nil {
		r.head = nil
		return w, nil, true
	}
	select {
	case w, ok := <-r.items:
		w, err = r.interpret(w, ok)
		return w, err, true
	default:
		return nil, nil, false
	}
}

// interpret says what an item means for the reader, and that all are taken to an uploader
// that waits for it.
func (r *run) interpret(w *window, ok bool) (*window, error) {
	if len(r.items) == 0 {
		r.drained.End()
	}
	switch {
	case !ok:
		r.over = true
		return nil, r.err
	case w == nil:
		r.epoch++
		if r.atEnd = false; r.at.Epoch < r.epoch { // else the last batch has told
			r.at = loader.Cursor{Epoch: r.epoch}
		}
		return nil, errEpochOver
	}
	return w, nil
}

// mostWaits is how many waits for one batch are divided by what that lacked.
const mostWaits = 1024

// A span is a stretch of time.
type span struct{ from, to time.Time }

// waited counts a wait of Next, which ended with a batch or an error, and returns the parts of
// all waits for the batch.
func (r *run) waited(s span, w *window, err error) (of journal.Parts) {
	r.waits = append(r.waits, s)
	if _, later := err.(again); later && len(r.waits) < mostWaits {
		return of // what the batch lacks is known when it has come
	}
	for _, s := range r.waits {
		of = of.Plus(r.stages.counters.waited(s, w))
	}
	r.waits = r.waits[:0]
	return of
}

// taken notes that a batch is the reader's.
func (r *run) taken(w *window, after loader.Cursor) {
	r.at, r.atEnd = after, w.batch.LastOfEpoch
}
