package prefetch

import (
	"context"
	"sync"
	"time"

	"github.com/leat-go/leat/internal/hold"
	"github.com/leat-go/leat/internal/life"
	"github.com/leat-go/leat/loader"
)

// A lookahead is what works ahead of the reader: at most one run, which goes on from the
// place where the reader stands.
type lookahead struct {
	loader *loader.Loader
	stages *stages
	place  place
	life   lifecycle
	notes  notes
	closed chan struct{} // closed by Close

	// turn is held by who uses the run: Open, Next, Seek, Quiesce and Close.
	turn  hold.Gate
	quiet bool // pause has stages.calls; guarded by turn

	mu  sync.Mutex
	run *run // nil if nothing works ahead; who changes it holds turn too
}

// byNext is Next as the holder of a lookahead's turn.
const byNext = 2

// lockForNext takes the turn for a Next that closing ends. Where another call has it that is
// no Next, it waits: for a Quiesce, which ends by itself, or a Close, of which the caller is
// told.
func (a *lookahead) lockForNext(ctx context.Context, closing <-chan struct{}) error {
	for !a.turn.TryLockAs(byNext) {
		if err := a.mayRead(ctx); err != nil {
			return err
		}
		select {
		case <-closing:
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

// alone runs f while nobody reads.
func (a *lookahead) alone(f func() error) error {
	if err := a.begin(); err != nil {
		return err
	}
	defer a.life.must(life.EndRead)
	defer a.turn.Unlock()
	return f()
}

// unlessClosed is err, or ErrClosed if the Prefetcher is closed: a source that gives its
// samples once is closed with it, and then has no place.
func (a *lookahead) unlessClosed(err error) error {
	if a.isClosed() {
		return ErrClosed
	}
	return err
}

// seek makes the place what to returns for it, while nobody else moves it: what the loader
// knows of a Stream's place is forgotten when a later one is delivered.
func (a *lookahead) seek(to func(stands loader.Cursor) (loader.Cursor, error)) error {
	return a.alone(func() error {
		cursor, err := to(a.place.at())
		if err != nil {
			return err
		}
		if a.run != nil && a.run.at != cursor {
			if err := a.stop(); err != nil {
				return err
			}
		}
		a.place.set(cursor)
		return nil
	})
}

// begin makes the caller the one who reads, and takes a.turn.
func (a *lookahead) begin() error {
	if _, err := a.life.step(life.Read); err != nil {
		return err
	}
	a.turn.Lock()
	if a.isClosed() { // while it waited
		a.turn.Unlock()
		a.life.must(life.EndRead)
		return ErrClosed
	}
	return nil
}

// ensureRun makes sure that there is a run at the cursor, unless all epochs are done. The
// caller holds a.turn.
func (a *lookahead) ensureRun(ctx context.Context) error {
	a.resume()
	if err := a.notes.take(); err != nil {
		return joined(err, unlessTold(a.stop(), err))
	}
	if r := a.run; r != nil && (r.over || r.ctx.Err() != nil || r.at != a.place.at()) {
		if err := a.stop(); err != nil {
			return err
		}
	}
	if a.run != nil || a.place.finished() {
		return nil
	}
	if a.isClosed() {
		return ErrClosed
	}
	rest, cancel := context.WithTimeout(ctx, a.closeTimeout())
	defer cancel()
	if err := a.stages.recover(rest); err != nil {
		if ctx.Err() != nil {
			return again{context.Cause(ctx)}
		}
		return err
	}
	if _, err := a.life.step(life.Begin); err != nil {
		return err
	}
	r := startRun(ctx, a.stages, a.place.claim, a.place.at())
	a.mu.Lock()
	a.run = r
	a.mu.Unlock()
	if a.isClosed() { // and had no run to cancel
		r.cancel(ErrClosed)
	}
	return nil
}

// stop ends the run, if there is one, and joins its goroutines. What was uploaded and not
// delivered is discarded. The caller holds a.turn.
func (a *lookahead) stop() error {
	a.resume()
	r := a.run
	if r == nil {
		return nil
	}
	r.cancel(errStopped)
	if err := r.join(a.limits()); err != nil {
		a.life.must(life.Stick)
		return err // the run stays: what it may use can't be used or freed
	}
	return a.joined(r)
}

// joined ends a run whose uploader has ended.
func (a *lookahead) joined(r *run) error {
	err := r.batches.Close()
	a.abandon(r)
	a.life.must(life.Join)
	return err
}

// abandon ends the use of a run, if it is in use: from here on it is the caller's alone.
func (a *lookahead) abandon(r *run) {
	a.stages.counters.ended(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run == r {
		a.run = nil
	}
}

func (a *lookahead) limits() *limits {
	l := &limits{}
	if a.stages.transform != nil {
		l.apply = a.grace()
	}
	if a.stages.pinned.pageable {
		l.copy = a.closeTimeout()
	}
	return l
}

// fail ends the run with an error that came up outside of it.
func (a *lookahead) fail(err error) {
	a.notes.keep(err)
	a.cancelRun(err)
}

// cancelRun tells the run to end, if there is one.
func (a *lookahead) cancelRun(cause error) {
	a.mu.Lock()
	r := a.run
	a.mu.Unlock()
	if r != nil {
		r.cancel(cause)
	}
}

// pause keeps the uploader from calling the device until resume. The caller holds a.turn.
func (a *lookahead) pause(ctx context.Context) error {
	if a.quiet {
		return nil
	}
	limits := a.limits()
	apply, copies := limits.begin()
	defer limits.end()
	for !a.stages.calls.TryLock() {
		select {
		case <-a.stages.calls.Opened():
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-apply:
			if err := a.stages.transform.visit.Stuck("Transform.Apply", a.grace()); err != nil {
				return err
			}
		case <-copies:
			if a.stages.pinned.copying.Load() {
				return &CloseError{HostSlots: true, Err: errPageable}
			}
		}
	}
	a.quiet = true
	if r := a.run; r != nil && a.stages.ring != nil {
		a.stages.ring.StopWatching()
	}
	return nil
}

// resume ends what pause has begun, if it has. The caller holds a.turn.
func (a *lookahead) resume() {
	if !a.quiet {
		return
	}
	a.quiet = false
	if r := a.run; r != nil && a.stages.ring != nil {
		a.stages.ring.StartWatching(r.ctx)
		a.stages.ring.Signal()
	}
	a.stages.calls.Unlock()
}

func (a *lookahead) isClosed() bool {
	select {
	case <-a.closed:
		return true
	default:
		return false
	}
}

// mayRead is why Next can't go on, if so.
func (a *lookahead) mayRead(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if a.isClosed() {
		return ErrClosed
	}
	return nil
}

func (a *lookahead) closeTimeout() time.Duration { return a.stages.sizes.options.CloseTimeout }

// grace is how long the user's code is waited for.
func (a *lookahead) grace() time.Duration {
	return max(leastGrace, a.loader.Options().GracePeriod)
}

// leastGrace is how long the user's code is waited for at least: it calls the driver,
// which can take its time.
const leastGrace = time.Second
