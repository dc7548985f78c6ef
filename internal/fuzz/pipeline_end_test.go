package fuzz

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// excuses are how many errors one fault may give rise to.
const excuses = 4

// allowed passes over errors that the program has brought about.
func (q *pipe) allowed(err error) error {
	var transform *prefetch.StageError
	var stuck *loader.StuckError
	var failed *loader.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errFault):
		return q.fault(err)
	case q.shape.Impatient && errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "come to rest"):
		return nil // what failed has not come to rest
	case q.closing.Load() && errors.Is(err, prefetch.ErrClosed), q.hangs && errors.Is(err, prefetch.ErrBusy):
		return nil
	case errors.As(err, &transform) && transform.Stage == "transform":
		return q.badly(err, transform.Position, q.program.Bad)
	case errors.As(err, &stuck) && (stuck.Stage == "Transform.Apply" || stuck.Stage == "the step"):
		return q.wasStuck(err)
	case q.noteStuck(err):
		return nil
	case q.stuck && errors.Is(err, pinnedpool.ErrExhausted):
		return nil
	case errors.As(err, &failed):
		if late(q.program.Data, err) {
			return nil
		}
		if e := q.ref.fits(err, q.ref.next()); e != nil {
			return fmt.Errorf("want %v, got %w", q.ref.next(), e)
		}
		return nil
	}
	return err
}

// noteStuck is whether err tells of a call that does not heed its context, rightly.
func (q *pipe) noteStuck(err error) bool {
	var read *loader.StuckError
	if !errors.As(err, &read) || read.Grace == 0 || q.program.Data.longest() < read.Grace {
		return false
	}
	q.stuck = true
	q.bench.stuck.Store(true)
	return true
}

// fault allows an error of the driver's, as often as its failure explains.
func (q *pipe) fault(err error) error {
	faults := q.bench.faults()
	if faults == 0 {
		return err
	}
	if q.excuse++; q.excuse > excuses*int(faults+1) {
		return fmt.Errorf("for the %d. time, and nothing has failed since: %w", q.excuse, err)
	}
	return nil
}

// badly checks the failure of device work at a batch.
func (q *pipe) badly(err error, at prefetch.Position, bad []trouble) error {
	o := q.ref.next()
	t, ok := find(bad, at.Batch, at.Epoch)
	switch {
	case !ok && errors.Is(err, errFault):
		return q.fault(err)
	case !ok || !t.breaks():
		return fmt.Errorf("at %+v, where nothing is wrong: %w", at, err)
	case (t.Kind == fails || t.Kind == panics) && !errors.Is(err, errUser):
		return fmt.Errorf("the user's error is lost: %w", err)
	case t.Kind == goexits && q.bench.faults() > 0:
		return nil // the driver's error, of a batch before it, ended with the goroutine
	case o.batch == nil && !q.atEnd(), o.batch != nil && (o.batch.epoch != at.Epoch || o.batch.batch != at.Batch):
		return fmt.Errorf("at %+v, want %v: %w", at, o, err)
	}
	return nil
}

// wasStuck allows a Transform or step that does not return in a second.
func (q *pipe) wasStuck(err error) error {
	bad := append([]trouble(nil), q.program.Bad...)
	for _, steps := range [][]pipelineStep{q.program.Steps, q.program.TwinSteps} {
		for _, s := range steps {
			bad = append(bad, s.Bad...)
		}
	}
	for _, t := range bad {
		if t.Kind == ignores && t.For >= time.Second {
			return nil
		}
	}
	return err
}

// close closes the pipeline, perhaps beside another Close, and keeps its error.
func (q *pipe) close() {
	first := !q.closing.Swap(true)
	pf := q.pf
	err := pf.Close()
	if first {
		q.closeErr = err
		close(q.closed)
	}
}

// end closes the pipeline and requires that nothing of it is left but what is held.
func (q *pipe) end() error {
	q.close()
	<-q.closed
	q.beside.Wait()
	var left *prefetch.CloseError
	err := q.closeErr
	q.noteStuck(err)
	if errors.As(err, &left) && len(left.Leased) > 0 {
		if n := len(left.Leased); n > q.most+1 && !q.released.Load() { // and one in a body beside it
			return fmt.Errorf("%d are leased, no more than %d were held: %w", n, q.most, err)
		}
	} else if q.shape.Impatient && errors.As(err, &left) && errors.Is(err, context.DeadlineExceeded) {
		// The device has work of longer than that; a reaper frees the rest.
	} else if q.stuck && strings.Contains(fmt.Sprint(err), "not back") {
		// It waits for code that did not heed its context.
	} else if err := q.allowed(err); err != nil {
		return fmt.Errorf("Close: %w", err)
	}
	if err := q.pf.Close(); err != nil && q.closeErr == nil {
		return fmt.Errorf("the second Close: %w", err)
	}
	if _, err := q.pf.Open(context.Background()); !errors.Is(err, prefetch.ErrClosed) {
		return fmt.Errorf("Open after Close: %w", err)
	}
	s := q.pf.Stats()
	ahead := q.mapped && s.Batches >= q.counted.Batches && s.Samples >= q.counted.Samples // a Map's steps count
	if !ahead && (s.Batches != q.counted.Batches || s.Samples != q.counted.Samples) {
		return fmt.Errorf("%d batches of %d samples are counted, delivered were %d of %d", s.Batches, s.Samples, q.counted.Batches, q.counted.Samples)
	}
	if s.Leases != len(q.held) && !(q.hangs && s.Leases == len(q.held)+1) {
		return fmt.Errorf("%d leases are counted, %d are held", s.Leases, len(q.held))
	}
	if err := q.releaseAll(); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if q.meter != nil {
		err := q.meter.meter.Close()
		q.meter = nil
		return err
	}
	return nil
}
