package fuzz

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

var errLeave = errors.New("the body panics")

// leaving runs a range on a goroutine of its own, which its body may end in any way.
func (q *pipe) leaving(s pipelineStep, loop func(ctx context.Context, leave func() bool) error) (err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if s.Lazily {
		ctx = lazy{ctx}
	}
	turns := 0
	q.ref.at = normalized(q.ld, q.ref.at)
	if s.Do != "epochs" && s.Do != "pass" && q.atEnd() { // no other range is empty
		q.ref.advance(q.ref.next())
	}
	leave := func() bool {
		if turns++; turns < s.Times {
			return false
		}
		switch s.Leave {
		case "cancel":
			cancel(errCancel)
			return false
		case "panic":
			panic(errLeave)
		case "goexit":
			runtime.Goexit()
		}
		return true
	}
	done := make(chan error, 1)
	go func() {
		err := error(nil)
		defer func() {
			if v := recover(); v != nil && v != errLeave {
				err = fmt.Errorf("panic: %v\n%s", v, stack())
			}
			done <- err
		}()
		err = loop(ctx, leave)
	}()
	return <-done
}

// rangeOver is a range that is left in one of its ways.
func (q *pipe) rangeOver(s pipelineStep) error {
	return q.leaving(s, func(ctx context.Context, leave func() bool) error {
		l := &looping{pipe: q, each: s.Each, leave: leave, start: time.Now()}
		switch s.Do {
		case "epochs":
			return l.epochs(ctx, s.Skip)
		case "pass":
			l.from(loader.Cursor{})
			return l.loop(ctx, q.pf.Pass(ctx), q.over)
		case "all":
			return l.loop(ctx, q.pf.All(ctx), l.overAll)
		}
		return l.loop(ctx, q.pf.Batches(ctx), q.over)
	})
}

// A looping is a range under way.
type looping struct {
	*pipe
	each  []string
	leave func() bool
	turn  int
	start time.Time      // when the last turn was over
	over  error          // what it has yielded
	was   *loader.Cursor // the reference's place before a Seek that the range makes, until its effect is seen
}

func (l *looping) loop(ctx context.Context, of iter.Seq2[prefetch.Batch, error], over func(context.Context, error) error) error {
	for b, err := range of {
		if left, err := l.body(b, err); left || err != nil {
			return err
		}
	}
	return over(ctx, l.over)
}

// body is one turn. It reports whether the range is to be left.
func (l *looping) body(b prefetch.Batch, err error) (left bool, wrong error) {
	q := l.pipe
	if l.over != nil {
		return true, fmt.Errorf("the range goes on behind its error, with %w", err)
	}
	if err != nil {
		if l.was != nil && q.pf.State().Equal(q.ld.StateAt(*l.was)) {
			q.ref.at = *l.was // the Seek has failed
		}
		q.crossed()
		l.over = err
		return false, nil
	}
	l.was = nil
	q.crossed()
	e, err := q.arrived(b)
	if err == nil {
		err = q.prompt(e, time.Since(l.start))
	}
	if err != nil {
		return true, err
	}
	if _, err := q.use(lease{b, e}, l.each[l.turn%len(l.each)]); err != nil {
		return true, err
	}
	l.turn++
	if l.leave() {
		return true, nil
	}
	l.start = time.Now()
	return false, nil
}

// from notes that the range goes to another place.
func (l *looping) from(to loader.Cursor) {
	was := l.ref.at
	l.was, l.ref.at = &was, to
}

// epochs is a range over epochs, of which the body leaves out the rest after skip batches,
// or all of the first if that is negative.
func (l *looping) epochs(ctx context.Context, skip int) error {
	for epoch, batches := range l.pf.Epochs(ctx) {
		if l.over != nil {
			return fmt.Errorf("epoch %d comes behind the error %w", epoch, l.over)
		}
		l.crossed()
		if l.was == nil && epoch != l.ref.at.Epoch {
			return fmt.Errorf("epoch %d comes, want %v", epoch, l.ref.next())
		}
		skipped := skip < 0 && l.turn == 0 && l.was == nil
		if !skipped {
			n := 0
			for b, err := range batches {
				if err == nil && b.Position().Epoch != epoch {
					return fmt.Errorf("%+v comes in epoch %d", b.Position(), epoch)
				}
				if left, err := l.body(b, err); left || err != nil {
					return err
				}
				if n++; n == skip && l.over == nil {
					skipped = true
					break
				}
			}
		}
		switch {
		case l.over != nil:
		case skipped:
			l.from(loader.Cursor{Epoch: epoch + 1})
		default:
			if err := l.natural(); err != nil {
				return err
			}
		}
	}
	return l.overAll(ctx, l.over)
}

// overAll is over for a range over all epochs.
func (l *looping) overAll(ctx context.Context, err error) error {
	if err != nil {
		return l.pipe.over(ctx, err)
	}
	l.crossed()
	if o := l.ref.next(); !o.dataEnd {
		return fmt.Errorf("all is over, want %v", o)
	}
	return nil
}

// crossed notes that the pipeline has gone on into the next epoch.
func (q *pipe) crossed() {
	if o := q.ref.next(); o.epochEnd && q.pf.Epoch() > q.ref.at.Epoch {
		q.ref.advance(o)
	}
}

// over checks the end of a range: err is what it yielded last, nil for a natural end.
func (q *pipe) over(ctx context.Context, err error) error {
	if err == nil {
		return q.natural()
	}
	q.lost = true
	switch {
	case err == errCancel && ctx.Err() != nil:
		return nil
	case errors.Is(err, prefetch.ErrLeases) && (len(q.held) > 0 || q.released.Load()):
		return q.releaseAll()
	}
	return q.allowed(err)
}

// natural is the epoch's end, or that of all epochs.
func (q *pipe) natural() error {
	o := q.ref.next()
	if !o.epochEnd && !o.dataEnd {
		return fmt.Errorf("the epoch ends, want %v", o)
	}
	q.ref.advance(o)
	return nil
}

// prompt requires that a batch does not wait for what is behind it.
func (q *pipe) prompt(e *expected, took time.Duration) error {
	if took < 900*time.Millisecond {
		return nil
	}
	if slices.ContainsFunc(q.program.Data.Iterator, func(t trouble) bool { return !t.breaks() }) {
		return nil // it may have been replayed
	}
	if q.program.Data.Iterable && q.program.Options.Last == loader.Drop && e.batch == 0 && e.epoch > 0 {
		return nil // the epoch before may have had a remainder: it is dropped, but has a slot, and is waited for
	}
	for _, t := range q.program.Data.Troubles {
		for p := e.after.Position - 1; p >= 0 && !t.breaks(); p-- {
			if q.ref.order(e.epoch, p) == t.At {
				return nil
			}
		}
	}
	if slices.ContainsFunc(q.program.Bad, func(t trouble) bool { return t.Kind == ignores }) || q.program.Options.OnError != 0 {
		return nil
	}
	return fmt.Errorf("batch %d of epoch %d takes %v, though nothing before its end does", e.batch, e.epoch, took)
}

// read pulls batches and holds on to some.
func (q *pipe) read(s pipelineStep) error {
	return q.leaving(s, func(ctx context.Context, leave func() bool) (err error) {
		rd, err := q.pf.Open(ctx)
		if err != nil {
			return q.over(ctx, err)
		}
		defer func() { err = errors.Join(err, q.allowed(rd.Close()), q.allowed(rd.Close())) }()
		within := s.For
		for turn := 0; ; turn++ {
			b, err := q.next(ctx, rd, within)
			if within == 0 {
				within = s.For
			} else if errors.Is(err, errLimit) {
				within = 0 // nothing is lost: the next call goes on, for as long as it takes
				continue
			}
			switch {
			case err == prefetch.ErrEpochEnd:
				return q.natural()
			case errors.Is(err, prefetch.ErrLeases) && (len(q.held) > 0 || q.released.Load()):
				if err := q.releaseAll(); err != nil {
					return err
				}
				continue
			case err != nil:
				if _, again := rd.Next(ctx); again != err && !q.closing.Load() {
					return fmt.Errorf("Next returns %w, before it returned %w", again, err)
				}
				return q.over(ctx, err)
			}
			if err := q.keep(b, s.Each[turn%len(s.Each)], s.For); err != nil {
				return err
			}
			if leave() {
				return nil
			}
		}
	})
}

// next is one call of Next, or of WaitNext where others will release a batch.
func (q *pipe) next(ctx context.Context, rd *prefetch.Reader, within time.Duration) (prefetch.Batch, error) {
	if within == 0 {
		return rd.Next(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, errLimit)
	defer cancel()
	var b prefetch.Batch
	var err error
	if q.releases.Load() > 0 {
		b, err = rd.WaitNext(ctx)
	} else {
		b, err = rd.Next(ctx)
	}
	if err == errLimit && ctx.Err() == nil {
		err = fmt.Errorf("before its time: %w", err)
	}
	return b, err
}

// keep uses a batch that was pulled, and releases it now, beside, or another time.
func (q *pipe) keep(b prefetch.Batch, how string, after time.Duration) error {
	e, err := q.arrived(b)
	if err != nil {
		return err
	}
	l := lease{b, e}
	switch how {
	case "hold":
		q.held = append(q.held, l)
		q.most = max(q.most, len(q.held))
		return q.look(l, how)
	case "release beside":
		err := q.look(l, how)
		q.releases.Add(1)
		q.released.Store(true)
		q.beside.Go(func() {
			time.Sleep(after)
			b.Release()
			q.releases.Add(-1)
		})
		return err
	}
	released, err := q.use(l, how)
	if !released {
		b.Release()
	}
	return err
}

// releaseAll gives back what is held, which has stayed as it was.
func (q *pipe) releaseAll() error {
	var errs []error
	for _, l := range q.held {
		errs = append(errs, q.look(l, "held"))
		l.batch.Release()
	}
	q.held = nil
	for q.releases.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	return errors.Join(errs...)
}
