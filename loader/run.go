package loader

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leat-go/leat/observe/journal"
)

// lookAhead bounds the batches that are open at once. In practice the number of
// slots does; this is only the size of a channel and of the lineup.
const lookAhead = 1024

// none is no batch's number: all are below it.
const none = math.MaxInt64

// Run is one pass over the data: it fills batches ahead of Next until the last
// epoch ends, a sample fails, its context is done, or Close.
//
// Its goroutines are a dispatcher, the workers, one for each of a Stream's shards, one that
// closes the samples which no batch takes, while there are any, and under Options.ReadTimeout
// those that read for others. They end by themselves when there is nothing left to open, and
// Close joins them, except for a Read that is late. A timer looks at the workers now and then,
// and is stopped by the last of them. Next and Close may be called by different goroutines;
// calls of Next wait for each other.
type Run struct {
	attended atomic.Int64 // since when, after began, somebody waits; 0 if that is not told
	loader   *Loader
	mem      Memory
	claimed  bool // a Claim tells what is delivered of a Stream
	recorder journal.Recorder
	began    time.Time

	order     chan *batch   // in order of delivery; nil ends an epoch
	lineup    lineup        // the batches that are open, and their rows for the workers
	arrivals  arrivals      // those that are filled
	inspector inspector     // of claims that take too long
	reserve   reserve       // of workers
	reserved  bool          // whether there is one
	demand    chan struct{} // asks for another epoch where no number is stated

	stop   context.CancelCauseFunc
	ctx    contextEnd
	live   atomic.Int32  // goroutines
	joined chan struct{} // closed by the last of them

	dispatcher *dispatcher
	disposal   *disposal // of the samples that no batch takes
	skips      skips
	exhausted  bool // written before order is closed: all there was is opened
	crew       crew
	tuning     *tuning // nil if the number of workers is stated
	lateReads  lateReads

	notices

	waitBatch, held               atomic.Int64
	waiting                       atomic.Int64 // since when, after began, Next has waited; 0 if it does not
	batches, samples, substituted atomic.Int64

	consumer sync.Mutex    // guards what follows
	head     *batch        // taken from order, not delivered yet
	ended    bool          // an epoch's end was taken from order, by Ready, and not delivered yet
	final    error         // what Next returns for ever
	atBorder bool          // the last call returned ErrEpochEnd
	replaced int           // substitutions in this epoch, those before the run's cursor too
	progress time.Time     // when all batches that were delivered were filled
	stall    *time.Timer   // nil without Options.StallTimeout
	waited   time.Duration // by the calls of Next since the last that returned something

	after      sync.Mutex
	afterwards error // what went wrong when the run was over; see late

	closing  sync.Once
	closeErr error
}

// notices are what workers read often and hardly anybody writes. Nothing that is written
// often shares their cache lines.
type notices struct {
	_ [128]byte
	// halted is set when the run's context is done, and by Close: asking the context
	// costs as much as a small sample.
	halted atomic.Bool
	failed atomic.Int64 // the lowest number of a batch that failed
	group  atomic.Int64 // about as many rows as a worker claims
	_      [128]byte
}

// contextEnd is all that Next needs of the context that the goroutines run under.
type contextEnd struct {
	done  <-chan struct{}
	cause func() error
}

func start(ctx context.Context, l *Loader, at Cursor, mem Memory, claimed bool, to journal.Recorder) *Run {
	ctx, stop := context.WithCancelCause(ctx)
	r := &Run{
		loader: l, mem: mem, claimed: claimed, recorder: to, began: time.Now(),
		order:  make(chan *batch, lookAhead),
		demand: make(chan struct{}, 1),
		stop:   stop,
		ctx:    contextEnd{ctx.Done(), func() error { return context.Cause(ctx) }},
		joined: make(chan struct{}),
	}
	workers := l.staff.first
	if l.options.Workers == Auto {
		r.tuning = newTuning(r)
		workers = r.tuning.tuner.workers
	}
	r.crew.workers = make([]atomic.Pointer[worker], l.staff.most)
	r.lineup.init(workers, l.staff.most, &r.inspector, func() {
		r.live.Add(1)
		go r.crew.take(r).loop(ctx)
	})
	r.arrivals.bell = make(chan struct{}, 1)
	r.reserve.init(l.staff.base, &r.lineup.begun)
	r.reserved = l.staff.most > l.staff.base
	r.failed.Store(none)
	r.group.Store(1)
	r.replaced = at.Substituted
	r.dispatcher = &dispatcher{run: r, batches: make(map[int]*batch)}
	r.disposal = newDisposal(r.late)
	if r.final = errors.Join(required("Memory", mem, "a memory"), l.validate(at)); r.final != nil {
		close(r.joined)
		return r
	}
	if l.merger != nil {
		r.dispatcher.merger = l.merger(r.dispatcher)
	}
	if l.once != nil {
		if err := l.once.begin(r, at); err != nil {
			r.final = err
			close(r.joined)
			return r
		}
	}
	if timeout := l.options.StallTimeout; timeout > 0 {
		r.stall = time.NewTimer(timeout)
		r.stall.Stop()
	}
	context.AfterFunc(ctx, r.halt)
	r.live.Store(1) // the dispatcher; all others are begun by one that lives
	r.crew.make(r, workers)
	r.inspector.init(r)
	go r.dispatcher.loop(ctx, at)
	return r
}

// halt has the workers read no further sample.
func (r *Run) halt() {
	r.halted.Store(true)
	r.lineup.stop()
}

// leave is the last thing each goroutine does.
func (r *Run) leave() {
	if r.live.Add(-1) == 0 {
		r.inspector.timer.Stop()
		r.tuning.end()
		close(r.joined)
	}
}

// Next returns the next batch, in order. After the last batch of each epoch it
// returns ErrEpochEnd once, and after the last epoch ErrEnd for ever. A failure
// is an *Error, returned after all batches before it, and then for ever. Where
// ctx is done first, its cause is returned and nothing is lost: the next call
// goes on. When the Run's own context is done, or it is closed, so is Next, even
// if there are batches left.
func (r *Run) Next(ctx context.Context) (Filled, error) {
	r.consumer.Lock()
	defer r.consumer.Unlock()
	if r.final != nil {
		return Filled{}, r.final
	}
	if r.atBorder {
		r.atBorder = false
		r.replaced = 0
		if r.loader.options.Epochs == 0 {
			r.demand <- struct{}{} // never blocks: the dispatcher awaits one for each border
		}
	}
	filled, err := r.next(ctx)
	if err != errAgain {
		r.waited = 0
	}
	switch err {
	case nil:
		r.batches.Add(1)
		r.samples.Add(int64(filled.Valid))
		r.returned(filled.After, nil)
		return filled, nil
	case errEpochOver:
		r.atBorder = true
		r.returned(Cursor{Epoch: 1}, nil)
		return Filled{}, ErrEpochEnd
	case errAgain:
		return Filled{}, disown(context.Cause(ctx))
	case errOver:
		err = ErrEnd
	}
	r.final = err
	r.returned(Cursor{}, err)
	return Filled{}, err
}

// returned tells a source of one pass, and so of one epoch, what Next returns, and a Stream
// too.
func (r *Run) returned(before Cursor, err error) {
	if r.loader.once != nil {
		r.loader.once.returned(before, err)
	}
	if before.track != nil && !r.claimed {
		before.track.delivered(r.loader.normalize(before))
	}
}

// Err is what Next returns for ever, nil while it may yet return something else: also
// behind an epoch's end, or where the context of a call was done.
func (r *Run) Err() error {
	r.consumer.Lock()
	defer r.consumer.Unlock()
	return r.final
}

// How next ends without a failure. No user gets hold of these, so that no error of
// theirs is taken for one.
var (
	errEpochOver = errors.New("the epoch is over")
	errOver      = errors.New("all epochs are over")
	errAgain     = errors.New("the caller's own context is done")
)

// next waits for the batch whose turn it is, and delivers it.
func (r *Run) next(ctx context.Context) (Filled, error) {
	for {
		if r.head == nil {
			b, err := r.receive(ctx)
			if err != nil {
				return Filled{}, err
			}
			r.head = b
		}
		if err := r.arrival(ctx, r.head); err != nil {
			return Filled{}, err
		}
		b := r.head
		r.inOrder(b)
		if b.dropped.Load() {
			r.head = nil
			b.open.Store(false)
			r.mem.Put(b.slot)
			continue
		}
		allowed := -1
		if limit := r.loader.options.MaxSubstituted; limit > 0 {
			allowed = max(limit-r.replaced, 0)
		}
		filled, err := b.result(allowed)
		if err == errSkipped {
			// Workers skip what nobody is to see, and wait's look at the context was
			// before that.
			err = r.interrupted(&Error{Epoch: b.filled.Epoch, Batch: b.filled.Batch, Sample: -1,
				Position: b.filled.Position, Shard: -1, Stage: b.stage(), Err: errSkipped})
		}
		if err != nil {
			return Filled{}, err // the slot goes back by Close
		}
		r.replaced += len(filled.Substituted)
		filled.After.Substituted = 0
		if allowed >= 0 {
			filled.After.Substituted = r.replaced
		}
		r.substituted.Add(int64(len(filled.Substituted)))
		r.arrivals.remove(b)
		b.open.Store(false)
		r.head = nil // the caller owns the slot from here
		return filled, nil
	}
}

// inOrder notes that all batches up to one are filled. The time for which it held up
// others counts from where those before it were filled: before, they did.
func (r *Run) inOrder(b *batch) {
	t := &b.filled.Times
	if first := r.arrivals.overtaken(b); first != nil && first.filled.Times.Filled.Before(t.Filled) {
		t.Overtaken = first.filled.Times.Filled
		from := t.Overtaken
		if from.Before(r.progress) {
			from = r.progress
		}
		r.held.Add(max(0, int64(t.Filled.Sub(from))))
	}
	if t.Filled.After(r.progress) {
		r.progress = t.Filled
	}
}

// interrupted is the cause of the run's own context, or what it is else.
func (r *Run) interrupted(otherwise error) error {
	select {
	case <-r.ctx.done:
		if cause := r.ctx.cause(); cause != ErrClosed {
			return disown(cause)
		}
		return ErrClosed
	default:
		return otherwise
	}
}

// over is the error of a run or a call whose context is done.
func (r *Run) over(ctx context.Context) error {
	if err := r.interrupted(nil); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errAgain
	}
	return nil
}

// arrival waits until a batch is filled.
func (r *Run) arrival(ctx context.Context, b *batch) error {
	if err := r.over(ctx); err != nil || r.arrivals.have(b) {
		return err
	}
	for !r.arrivals.await(b) {
		if _, _, err := wait(ctx, r, r.arrivals.bell); err != nil {
			return err
		}
	}
	r.arrivals.awaited.Store(0)
	return nil
}

// receive takes the next batch from order, complete or not.
func (r *Run) receive(ctx context.Context) (*batch, error) {
	if r.ended {
		r.ended = false
		return nil, errEpochOver
	}
	b, ok, err := wait(ctx, r, r.order)
	switch {
	case err != nil:
		return nil, err
	case b != nil:
		return b, nil
	case ok:
		return nil, errEpochOver
	case r.exhausted:
		return nil, errOver
	}
	// The dispatcher ended because it was told to: a failure that it ended for came
	// before this.
	return nil, r.interrupted(&Error{Sample: -1, Shard: -1, Stage: StageSlot, Err: errSkipped})
}

// wait receives from ready, counts the time that takes, and watches for a stall.
func wait[T any](ctx context.Context, r *Run, ready <-chan T) (v T, ok bool, err error) {
	if err := r.over(ctx); err != nil {
		return v, false, err
	}
	select {
	case v, ok = <-ready:
		return v, ok, nil
	default:
	}
	began := time.Now()
	r.waiting.Store(max(1, int64(began.Sub(r.began))))
	defer func() {
		r.waiting.Store(0)
		waited := time.Since(began)
		r.waitBatch.Add(int64(waited))
		r.waited += waited
		if r.stall != nil {
			r.stall.Stop()
		}
	}()
	for {
		select {
		case v, ok = <-ready:
			return v, ok, nil
		case <-ctx.Done():
		case <-r.ctx.done:
		case <-r.watch(began):
			if err := r.stalled(began); err != nil {
				return v, false, err
			}
		}
		if err := r.over(ctx); err != nil {
			return v, false, err
		}
	}
}

// late keeps the first failure that no batch can tell of any more, for Close.
func (r *Run) late(err *Error) {
	r.after.Lock()
	defer r.after.Unlock()
	if r.afterwards == nil {
		r.afterwards = err
	}
}

// fail notes that a batch failed: nothing after it will be delivered.
func (r *Run) fail(number int64) {
	for {
		lowest := r.failed.Load()
		if number >= lowest || r.failed.CompareAndSwap(lowest, number) {
			return
		}
	}
}
