package fuzz

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leat-go/leat/loader"
)

var errLimit = errors.New("the call's context is over")

// take calls Next and checks what comes.
func (r *loading) take(within time.Duration, lazily bool) error {
	if len(r.held) == r.slots {
		r.give(0) // or nobody would ever get one
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if within > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, within, errLimit)
	}
	defer cancel()
	if lazily {
		ctx = lazy{ctx}
	}
	ended, ready, start := r.ended.Load(), r.run.Ready(), time.Now()
	f, err := r.run.Next(ctx)
	took := time.Since(start)
	o := r.ref.next()
	switch {
	case r.final != nil:
		if err != r.final {
			return fmt.Errorf("Next returns %w, before it returned %w", err, r.final)
		}
		return nil
	case err == loader.ErrClosed || err == errCancel:
		if !r.ending.Load() {
			return fmt.Errorf("a run that nobody ended: %w", err)
		}
		r.final = err
		return nil
	case ended:
		return fmt.Errorf("a run that has ended gives %v, %w", f.Batch, err)
	case err == errLimit:
		if ctx.Err() == nil {
			return fmt.Errorf("after %v of %v: %w", took, within, err)
		}
		return nil
	case took > 0 && !r.program.Data.slow():
		return fmt.Errorf("Next takes %v, though nothing does", took)
	case took > 0 && ready:
		return fmt.Errorf("Next takes %v, though it was ready", took)
	case err == nil:
		return r.batch(f, o)
	case err == loader.ErrEpochEnd:
		if !o.epochEnd {
			return fmt.Errorf("the epoch's end, want %v", o)
		}
		r.ref.advance(o)
		return nil
	case err == loader.ErrEnd:
		if !o.dataEnd {
			return fmt.Errorf("the data's end, want %v", o)
		}
		r.final = err
		return nil
	}
	r.final = err
	return r.failure(err, o)
}

// failure checks an error of the run's.
func (r *loading) failure(err error, o outcome) error {
	var stall *loader.StallError
	var e *loader.Error
	if errors.As(err, &stall) && r.program.Data.slow() && stall.Age >= stall.Timeout && stall.Timeout == r.ref.options.StallTimeout {
		return nil
	}
	if errors.Is(err, errMemory) && r.mem.hasFailed() && errors.As(err, &e) && e.Stage == loader.StageSlot {
		return nil
	}
	if o.batch == nil && len(o.failures) == 0 {
		return fmt.Errorf("want %v, got %w", o, err)
	}
	if o.batch != nil && r.ref.options.OnError == loader.Substitute {
		var none *loader.SubstituteError
		if !errors.As(err, &none) || none.Last == nil {
			return fmt.Errorf("want %v, got %w", o, err)
		}
	}
	if err := r.ref.fits(err, o); err != nil {
		return fmt.Errorf("want %v, got %w", o, err)
	}
	return nil
}

// batch checks a batch that was delivered.
func (r *loading) batch(f loader.Filled, o outcome) error {
	r.mem.deliver(f.Slot)
	r.held = append(r.held, f)
	want := o.batch
	if want == nil {
		return fmt.Errorf("batch %d of epoch %d at %d, want %v", f.Batch, f.Epoch, f.Position, o)
	}
	if f.Epoch != want.epoch || f.Batch != want.batch || f.Position != want.position || f.N != len(want.indices) ||
		f.Valid != want.valid || f.After != want.after || f.LastOfEpoch != want.last {
		return fmt.Errorf("%+v, want %v", f, o)
	}
	if err := r.ref.substitutes(want, f.Substituted); err != nil {
		return err
	}
	err := r.program.Data.compare(func(name string) []byte {
		field, _ := r.ld.Layout().Lookup(name)
		return r.ld.Layout().Rows(field, f)
	}, want, r.words)
	if err != nil {
		return fmt.Errorf("batch %d of epoch %d: %w", f.Batch, f.Epoch, err)
	}
	r.ref.advance(o)
	r.delivered.Batches++
	r.delivered.Samples += int64(f.Valid)
	r.delivered.Substituted += int64(len(f.Substituted))
	return nil
}

// close ends the run, joins what goes on beside, and requires that nothing is left.
func (r *loading) close() error {
	r.end(func() { r.closed <- r.closeRun() })
	r.beside.Wait()
	close(r.closed)
	stuck := 0
	for err := range r.closed {
		n, wrong := r.stuckIn(err)
		if wrong != nil {
			return wrong
		}
		stuck = max(stuck, n)
	}
	s := r.run.Stats()
	if d := r.delivered; s.Batches != d.Batches || s.Samples != d.Samples || s.Substituted != d.Substituted {
		return fmt.Errorf("the run counts %+v, delivered were %+v", s, d)
	}
	return errors.Join(r.mem.account(len(r.held), stuck), r.src.accusation())
}

// closeRun is Close, which takes as long as one call of the user's code, or as the
// grace.
func (r *loading) closeRun() error {
	if r.program.Data.slow() {
		// Who waits for another's Close may wait for a lock, and that stops the
		// bubble's clock.
		r.turn <- struct{}{}
		defer func() { <-r.turn }()
	}
	start := time.Now()
	err := r.run.Close()
	r.src.over.Store(true)
	if took, limit := time.Since(start), min(r.program.Data.longest(), r.ld.Options().GracePeriod); took > limit {
		r.src.accuse("Close takes %v, no call of the user's code more than %v", took, limit)
	}
	return err
}

// stuckIn is how many calls a Close had to leave; an error of another kind is wrong.
func (r *loading) stuckIn(err error) (n int, wrong error) {
	if err == nil {
		return 0, nil
	}
	var stuck *loader.StuckError
	if errors.As(err, &stuck) && r.program.Data.longest() >= stuck.Grace {
		return r.program.Options.Workers + 5, nil
	}
	if late(r.program.Data, err) {
		return 0, nil
	}
	return 0, fmt.Errorf("Close: %w", err)
}
