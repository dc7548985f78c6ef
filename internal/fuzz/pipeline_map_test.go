package fuzz

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/prefetch"
)

// mapOver brings batches back as results.
func (q *pipe) mapOver(s pipelineStep) error {
	if err := q.releaseAll(); err != nil { // its steps need every slot
		return err
	}
	q.mapped = true
	q.hangs = q.hangs || slices.ContainsFunc(s.Bad, func(t trouble) bool { return t.Kind == ignores })
	out := prefetch.Output{Fields: q.program.Data.fields(), Slots: s.Slots, AsFinished: s.AsDone}
	step := func(b prefetch.Batch, to prefetch.Fields) error {
		if bad, ok := find(s.Bad, b.Position().Batch, b.Position().Epoch); ok {
			if _, err := bad.meet(context.Background()); err != nil {
				return err
			}
		}
		if err := busy(b.Stream(), time.Duration(b.Position().Batch%3)*q.program.busy()); err != nil {
			return err
		}
		for _, f := range out.Fields {
			if err := b.Stream().CopyD2D(to.Field(f.Name).View, b.Field(f.Name).View); err != nil {
				return err
			}
		}
		return nil
	}
	return q.leaving(s, func(ctx context.Context, leave func() bool) error {
		var over error
		ahead := &ahead{pipe: q}
		for res, err := range q.pf.Map(ctx, out, step) {
			switch {
			case over != nil:
				return fmt.Errorf("the Map goes on behind its error, with %w", err)
			case err != nil:
				over = err
				continue
			case q.shape.Host:
				return errors.New("a Map of a host pipeline yields results")
			}
			if err := ahead.result(res, s.AsDone); err != nil {
				return err
			}
			if leave() {
				return nil
			}
		}
		var failed *prefetch.StageError
		if errors.As(over, &failed) && failed.Stage == "step" {
			return q.badly(over, failed.Position, s.Bad)
		}
		if q.shape.Host && over != nil {
			return nil // it needs a device
		}
		if over == nil && len(ahead.open) > 0 {
			return fmt.Errorf("%d results are missing", len(ahead.open))
		}
		return q.over(ctx, over)
	})
}

// ahead is what a Map has yielded before its turn.
type ahead struct {
	pipe *pipe
	open map[prefetch.Position]bool
}

// result checks one result, and moves the reference behind all of which none is
// missing.
func (a *ahead) result(res prefetch.Result, anyOrder bool) error {
	q := a.pipe
	if a.open == nil {
		a.open = make(map[prefetch.Position]bool)
	}
	scout := *q.ref
	for far := 0; ; far++ {
		o := scout.next()
		e := o.batch
		if e == nil || far > 0 && !anyOrder {
			return fmt.Errorf("result %+v, want %v", res.Position(), q.ref.next())
		}
		scout.advance(o)
		at := prefetch.Position{Epoch: e.epoch, Batch: e.batch, First: e.position}
		if at != res.Position() {
			continue
		}
		if a.open[at] {
			return fmt.Errorf("result %+v comes twice", at)
		}
		a.open[at] = true
		if res.Len() != len(e.indices) || res.Valid() != e.valid {
			return fmt.Errorf("result %+v has %d rows, %d valid, want %v", at, res.Len(), res.Valid(), o)
		}
		for _, row := range e.broken { // by a sample that the result doesn't tell
			e.indices[row] = unknown
		}
		contents := func(name string) []byte { return res.Field(name).Bytes }
		if err := q.program.Data.compare(contents, e, q.words); err != nil {
			return fmt.Errorf("result %+v: %w", at, err)
		}
		break
	}
	for o := q.ref.next(); o.batch != nil; o = q.ref.next() {
		at := prefetch.Position{Epoch: o.batch.epoch, Batch: o.batch.batch, First: o.batch.position}
		if !a.open[at] {
			break
		}
		delete(a.open, at)
		q.ref.advance(o)
	}
	if is, want := q.pf.State(), q.ld.StateAt(q.ref.at); !is.Equal(want) {
		return fmt.Errorf("at result %+v the state is %+v, want %+v", res.Position(), is, want)
	}
	return nil
}
