package loader

import (
	"context"
	"fmt"
)

// iteration is one epoch of an Iterable on its way into batches. It belongs to the
// dispatcher's goroutine.
type iteration struct {
	intake
	begin Cursor
	// sample is the number of the next one in the iterator's order.
	sample int64
	// unfilled is how many rows batches lacked that were flushed.
	unfilled int64
	// part is this rank's part of the global batch that has begun, which was opened with
	// the global batch's first sample.
	part part
}

// iterate opens the batches of one epoch of an Iterable. It reports whether the
// run goes on.
func (d *dispatcher) iterate(ctx context.Context, at Cursor) (ok bool) {
	s := &iteration{intake: intake{dispatcher: d}, begin: at}
	if d.run.loader.once != nil {
		s.sample = at.Position // it gives none of those before
	}
	defer s.abandon()
	if s.all(ctx) {
		return s.finish(ctx)
	}
	return false
}

// all takes what the iterator gives. It reports whether the iterator ended by
// itself.
func (s *iteration) all(ctx context.Context) (natural bool) {
	going, returned := true, false
	defer func() {
		s.iterating.Store(0)
		if returned {
			return
		}
		err := s.failure(caught(recover()))
		if going && ctx.Err() == nil {
			s.refuse(ctx, err)
		} else {
			s.run.late(err) // in its clean-up
		}
		natural = false
	}()
	s.enter()
	if ctx.Err() == nil { // in this order with enter, as in worker.fill
		samples := s.run.loader.pass(ctx, s.begin.Epoch)
		if samples == nil {
			samples = noIterator
		}
		for encoder, err := range samples {
			s.iterating.Store(0)
			going = s.next(ctx, encoder, err)
			s.enter() // also for its clean-up
			if !going || ctx.Err() != nil {
				break
			}
		}
	}
	returned = true
	return going && ctx.Err() == nil
}

// noIterator stands for the nil that Samples returned.
func noIterator(yield func(Encoder, error) bool) { yield(nil, errNoIterator) }

// next deals with what the iterator yields. It reports whether the run goes on.
func (s *iteration) next(ctx context.Context, encoder Encoder, err error) bool {
	switch {
	case ctx.Err() != nil:
		if err == nil {
			s.discard(ctx, encoder)
		}
		return false
	case err == Flush: // wrapped it is a failure, as io.EOF would be
		if err = s.flush(); err == nil {
			return true
		}
	case err == nil && encoder == nil:
		err = errNoSample
	case err == nil:
		return s.take(ctx, encoder)
	}
	s.refuse(ctx, s.failure(err))
	return false
}

// flush delivers the rows that there are.
func (s *iteration) flush() error {
	if ranks := s.run.loader.split.ranks; ranks > 1 {
		return flushedBy(ranks)
	}
	if s.batch != nil {
		s.unfilled += s.part.after - s.sample
		s.end()
	}
	return nil
}

// flushedBy is the failure of a flush where there are several ranks.
func flushedBy(ranks int64) error {
	return fmt.Errorf("%w: with %d ranks, which must make equally many steps", errFlush, ranks)
}

// enter notes that the goroutine goes into the user's iterator.
func (s *iteration) enter() {
	s.epoch.Store(int64(s.begin.Epoch))
	s.position.Store(s.sample)
	s.iterating.Store(s.sinceStart())
}

// take puts one sample where it belongs. It reports whether the run goes on.
func (s *iteration) take(ctx context.Context, encoder Encoder) bool {
	if s.sample < s.begin.Position { // delivered before the run began
		s.discard(ctx, encoder)
		s.sample++
		return true
	}
	split := s.run.loader.split
	if s.batch == nil {
		at := Cursor{Epoch: s.begin.Epoch, Position: s.sample}
		s.part = split.part(s.sample)
		if !s.start(ctx, Filled{Epoch: at.Epoch, Batch: s.number(), Position: s.part.position, After: at}) {
			s.discard(ctx, encoder)
			return false
		}
	}
	if s.sample >= s.part.position && s.rows < int(split.batch) {
		s.add(encoder)
	} else {
		s.discard(ctx, encoder) // another rank's
	}
	s.sample++
	if s.sample == s.part.after {
		s.end()
	}
	return true
}

// discard ends the iterator's newest sample, which no batch of this run takes. Where
// Close is slower than the iterator it waits, for what a sample owns is scarce.
func (s *iteration) discard(ctx context.Context, encoder Encoder) {
	d := s.run.disposal
	d.add(encoder, s.begin.Epoch, s.number(), s.sample)
	if !d.crowded() {
		return
	}
	s.crowded.Store(s.sinceStart())
	defer s.crowded.Store(0)
	for d.crowded() {
		select {
		case <-d.room:
		case <-ctx.Done():
			return
		}
	}
}

// number is that of the batch which the iterator's next sample belongs to.
func (s *iteration) number() int { return int((s.sample + s.unfilled) / s.run.loader.split.global()) }

// end lets the batch go: what becomes of it is known.
func (s *iteration) end() {
	after := s.batch.filled.After
	after.Position = s.sample
	s.seal(after)
}

// finish deals with what the iterator left over when it ended by itself. It reports
// whether the run goes on.
func (s *iteration) finish(ctx context.Context) bool {
	switch {
	case s.sample == 0 && s.run.loader.once.gaveAny():
		return true // all have failed, and were reported
	case s.sample == 0:
		s.refuse(ctx, s.failure(fmt.Errorf("%w: the iterator gave none; it must begin again each time it is ranged over", ErrNoSamples)))
		return false
	case s.sample < s.begin.Position:
		s.refuse(ctx, s.failure(fmt.Errorf("the iterator gave %d samples where it is to go on from %d", s.sample, s.begin.Position)))
		return false
	case s.batch == nil:
		return true
	}
	l := s.run.loader
	if l.options.Last != Drop {
		s.end()
		return true
	}
	if s.sample < l.split.global() {
		s.refuse(ctx, s.failure(fmt.Errorf("%w: the iterator gave %d, %s",
			ErrTooFewSamples, s.sample, l.split.takes())))
		return false
	}
	s.batch.drop(s.run)
	s.end()
	return true
}

// failure is what goes wrong at the iterator's next sample.
func (s *iteration) failure(cause error) *Error {
	return &Error{
		Epoch: s.begin.Epoch, Batch: s.number(),
		Sample: int(s.sample), Position: s.sample, Shard: -1, Stage: StageIterate, Err: cause,
		of: s.run.loader.once.broken(),
	}
}
