package loader

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Trace tells what the steps from, from+1 and so on before to are made of, counted from 0
// behind a State of a Stream: what Which tells of a Dataset, step by step, rank by rank, row by
// row. With several ranks the State is that of all, as MergeStates makes it.
//
// Which record is in which step follows from how long shards are and from what is left out,
// which nobody knows without looking. So Trace reads: it opens the shards of all ranks where
// the State has them, and reads them on the caller's goroutine through all steps from the
// State's place to the last one. It encodes samples only if Options.Skips is set, and then
// without Options.ReadTimeout. Runs are not disturbed, and nothing is counted.
//
// An error is yielded once, last: a *StateError, an *OptionError for other data than a Stream,
// or what the Stream returns. The steps end where the data ends. A panic of the Stream goes
// through.
func (l *Loader) Trace(ctx context.Context, s State, from, to int) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		t, err := l.tracer(s, from, to)
		if err != nil {
			yield(Sample{}, err)
			return
		}
		left := false
		defer func() {
			if err := errors.Join(err, t.close()); err != nil && !left {
				yield(Sample{}, err)
			}
		}()
		left = true // also if it panics
		left, err = t.steps(ctx, from, to, func(s Sample) bool { return yield(s, nil) })
	}
}

// tracer reads the shards of all ranks in the order in which their Runs do.
type tracer struct {
	loader *Loader
	at     Cursor      // where the next step begins
	number int         // of that step in its epoch
	ranks  [][]*traced // the shards of each rank
	rows   [][]Sample  // those of each rank in the step under way
}

func (l *Loader) tracer(s State, from, to int) (*tracer, error) {
	if l.stream == nil {
		return nil, &OptionError{Option: "Trace", Value: "of other data than a Stream", Want: "a Stream: Which tells of a Dataset"}
	}
	if from < 0 || to < from {
		return nil, &OptionError{Option: "Trace", Value: fmt.Sprintf("steps %d to %d", from, to), Want: "steps of 0 or more, the first one first"}
	}
	if err := l.Check(s); err != nil {
		return nil, err
	}
	at := l.normalize(s.Cursor())
	t := &tracer{loader: l, at: at.bare(), number: l.split.number(at), ranks: make([][]*traced, l.split.ranks), rows: make([][]Sample, l.split.ranks)}
	for _, m := range l.marksOfAll(at) {
		rank := m.Shard % len(t.ranks)
		t.ranks[rank] = append(t.ranks[rank], newTraced(l, m))
	}
	return t, nil
}

// marksOfAll returns the marks of the shards of all ranks at the place of a State.
func (l *Loader) marksOfAll(at Cursor) (marks []ShardMark) {
	if at.track != nil {
		return at.track.at(at)
	}
	for shard := range l.shards {
		marks = append(marks, ShardMark{Shard: shard, Pass: at.Epoch})
	}
	return marks
}

// steps reads all steps up to one, and yields the samples of those from another one on. It
// reports whether the loop was left.
func (t *tracer) steps(ctx context.Context, from, to int, yield func(Sample) bool) (left bool, err error) {
	for step := 0; step < to; {
		if end := t.loader.options.Epochs; end > 0 && t.at.Epoch >= end {
			return false, nil
		}
		if err := t.jump(ctx); err != nil {
			return false, err
		}
		going, err := t.step(ctx)
		if err != nil {
			return false, err
		}
		if !going {
			if err := t.turn(); err != nil {
				return false, err
			}
			continue
		}
		if step >= from && !t.tell(step-from, yield) {
			return true, nil
		}
		t.pass()
		step++
	}
	return false, nil
}

// jump drops the samples of the steps that are jumped over.
func (t *tracer) jump(ctx context.Context) error {
	l, from := t.loader, t.at
	to := min(l.split.jump(from), l.split.length(from.Epoch))
	for ended := false; t.at.Position < to && !ended; t.at.Position += l.split.ranks {
		ended = true
		for _, shards := range t.ranks {
			_, outcome, err := nextTraced(ctx, shards)
			for outcome == aFlush && err == nil {
				_, outcome, err = nextTraced(ctx, shards)
			}
			if err != nil {
				return err
			}
			ended = ended && outcome == anEnd
		}
	}
	t.number += l.split.number(t.at) - l.split.number(from)
	return nil
}

// step gathers the samples of a step. It reports whether the ranks make it.
func (t *tracer) step(ctx context.Context) (going bool, err error) {
	l := t.loader
	if l.split.rest(t.at) == 0 {
		return false, nil
	}
	size := int(l.split.size(t.at.Epoch, t.at.Position))
	least, most := size, 0
	for rank, shards := range t.ranks {
		flushed, err := t.gather(ctx, rank, shards, size)
		n := len(t.rows[rank])
		if err != nil || flushed {
			return n > 0, err
		}
		least, most = min(least, n), max(most, n)
	}
	switch {
	case l.options.Steps > 0 && least < size:
		return false, fmt.Errorf("%w: no shard of a rank gave any in a whole pass", ErrNoSamples)
	case l.options.Last == Drop:
		return least == size, nil
	}
	return most > 0, nil
}

// gather gathers a rank's samples of a step, until there are enough, none is left, or a flush
// comes, which is for one rank alone.
func (t *tracer) gather(ctx context.Context, rank int, shards []*traced, size int) (flushed bool, err error) {
	rows := t.rows[rank][:0]
	defer func() { t.rows[rank] = rows }()
	for len(rows) < size {
		s, outcome, err := nextTraced(ctx, shards)
		switch {
		case err != nil:
			return false, err
		case outcome == anEnd:
			return false, nil
		case outcome == aSample:
			rows = append(rows, s)
		case len(t.ranks) > 1:
			return false, flushedBy(t.loader.split.ranks)
		case t.loader.options.Steps > 0:
			return false, errFlush
		case len(rows) > 0:
			return true, nil
		}
	}
	return false, nil
}

// tell yields the samples of the step.
func (t *tracer) tell(step int, yield func(Sample) bool) bool {
	for rank, rows := range t.rows {
		for row, s := range rows {
			s.Step, s.Epoch, s.Batch, s.Rank, s.Row = step, t.at.Epoch, t.number, rank, row
			s.Index, s.Excluded, s.Leaf = -1, -1, Leaf{-1, -1}
			if !yield(s) {
				return false
			}
		}
	}
	return true
}

// pass goes behind the step.
func (t *tracer) pass() {
	most := 0
	for _, rows := range t.rows {
		most = max(most, len(rows))
	}
	t.at.Position += int64(most) * t.loader.split.ranks
	t.number++
}

// turn goes to the next epoch.
func (t *tracer) turn() (err error) {
	t.at, t.number = Cursor{Epoch: t.at.Epoch + 1}, 0
	if t.loader.split.fixed > 0 {
		return nil // the sequence goes on
	}
	for _, shards := range t.ranks {
		for i, s := range shards {
			err = errors.Join(err, s.close())
			shards[i] = newTraced(t.loader, ShardMark{Shard: s.number, Pass: t.at.Epoch})
		}
	}
	return err
}

func (t *tracer) close() (err error) {
	for _, shards := range t.ranks {
		for _, s := range shards {
			err = errors.Join(err, s.close())
		}
	}
	return err
}
