package loader

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// merger is the samples of a rank's shards on their way into batches, in the order of their
// positions: of the shards that have not ended it takes one sample each, in the order of
// their number, again and again. Which is next follows from how many each has given, and
// from nothing else. It belongs to the dispatcher's goroutine.
type merger struct {
	intake
	shards []*shard // the rank's, by number
	alive  []*shard // those that have not ended
	turn   int      // in alive: those before it have given more than level
	level  int64    // how many samples a shard has given whose turn it is
	entry  entry    // what next has taken

	running bool // the shards' goroutines were started
	joined  sync.WaitGroup
	cancel  context.CancelFunc
	track   *track

	begin   Cursor // of the epoch, or where the run began in it
	made    int    // batches since, and steps that were jumped over
	given   int64  // samples since, jumped ones too
	full    int    // rows of the batch under way when it is full
	skipped int    // samples left out in the epoch, those before begin too
	pending []pending
}

// merge implements merging.
func (m *merger) merge(ctx context.Context, at Cursor) bool {
	if !m.running {
		m.launch(ctx, at)
	}
	m.begin, m.made, m.given, m.skipped = at, 0, 0, at.Skipped
	defer m.abandon()
	fill := m.flow
	if m.asks() {
		fill = m.agreed
	}
	if !fill(ctx) {
		return false // loop ends the shards, when the end of the run is told
	}
	if m.run.loader.options.Steps == 0 {
		m.iterating.Store(m.sinceStart()) // a reader may take its time to end
		m.end()
		m.iterating.Store(0)
	}
	return true
}

// asks reports whether the ranks have to agree on each step.
func (m *merger) asks() bool {
	l := m.run.loader
	return l.split.ranks > 1 && l.options.Steps == 0
}

// round begins a round: the turn of those that have given fewest.
func (m *merger) round() {
	m.turn, m.level = 0, maxSamples
	for _, s := range m.alive {
		m.level = min(m.level, s.taken.given)
	}
}

// due is the shard whose turn it is, nil if all have ended.
func (m *merger) due() *shard {
	for len(m.alive) > 0 {
		for ; m.turn < len(m.alive); m.turn++ {
			if s := m.alive[m.turn]; s.taken.given == m.level {
				return s
			}
		}
		m.round()
	}
	return nil
}

// next takes what comes next into m.entry: a sample, a flush or a failure. s is nil if all
// shards have ended. It reports false when ctx is done.
func (m *merger) next(ctx context.Context) (s *shard, ok bool) {
	e := &m.entry
	for {
		if s = m.due(); s == nil {
			return nil, true
		}
		if !s.queue.take(e) && !m.await(ctx, s) {
			return s, false
		}
		if e.skipped > 0 && !m.skip(s, e) {
			return s, true
		}
		switch e.kind {
		case aSample:
			s.taken.given++
			s.taken.pass, s.taken.read = e.pass, e.read
			m.turn++
		case anEnd:
			s.taken.ended = true
			m.alive = slices.Delete(m.alive, m.turn, m.turn+1)
			continue
		}
		return s, true
	}
}

// await waits for a shard's next entry.
func (m *merger) await(ctx context.Context, s *shard) bool {
	m.epoch.Store(int64(m.begin.Epoch))
	m.position.Store(position(s.taken.given, s.number, m.run.loader.shards))
	m.iterating.Store(m.sinceStart())
	defer m.iterating.Store(0)
	for {
		if s.queue.awaitMore() {
			select {
			case <-s.queue.more:
			case <-ctx.Done():
				return false
			}
		}
		if s.queue.take(&m.entry) {
			return true
		}
	}
}

// skip counts the samples that were left out before an entry. One too many makes a failure
// of it.
func (m *merger) skip(s *shard, e *entry) bool {
	m.skipped += int(e.skipped)
	limit := m.run.loader.options.MaxSkipped
	if limit == 0 || m.skipped <= limit {
		return true
	}
	m.discard(s, e)
	*e = entry{kind: aFailure, err: &failure{error: &SkipError{Max: limit, Err: e.err}, stage: StageEncode}}
	return false
}

// flow fills batches as the samples come, until the epoch ends. It reports whether the run
// goes on.
func (m *merger) flow(ctx context.Context) bool {
	if !m.leap(ctx) {
		return false
	}
	for left := m.run.loader.split.rest(m.after()); left > 0; {
		s, ok := m.next(ctx)
		e := &m.entry
		switch {
		case !ok:
			return false
		case s == nil:
			return m.finish(ctx)
		case e.kind == aFailure:
			m.refuse(ctx, m.failure(s, e.err))
			return false
		case e.kind == aFlush:
			if err := m.flush(); err != nil {
				m.refuse(ctx, m.failure(s, err))
				return false
			}
			if m.batch != nil && !m.close(ctx, false) {
				return false
			}
			continue
		}
		if !m.take(ctx, s, e) {
			return false
		}
		if m.rows == m.full {
			if left--; !m.close(ctx, left == 0) {
				return false
			}
		}
	}
	return true
}

// flush reports why the rows that there are can't be delivered now.
func (m *merger) flush() error {
	switch l := m.run.loader; {
	case l.split.ranks > 1:
		return flushedBy(l.split.ranks)
	case l.options.Steps > 0:
		return fmt.Errorf("%w under Options.Steps, where every batch is full", errFlush)
	}
	return nil
}

// take puts a sample into the batch under way, or into a new one.
func (m *merger) take(ctx context.Context, s *shard, e *entry) bool {
	at := position(s.taken.given-1, s.number, m.run.loader.shards)
	if m.batch == nil && !m.startAt(ctx, at) {
		m.discard(s, e)
		return false
	}
	m.batch.places[m.rows] = rowPlace{epoch: e.pass, position: at}
	m.add(e.encoder)
	return true
}

// startAt opens a batch whose first row is at a position.
func (m *merger) startAt(ctx context.Context, at int64) bool {
	m.full = m.size()
	return m.start(ctx, Filled{Epoch: m.begin.Epoch, Batch: m.number(), Position: at, After: m.after()})
}

// size is how many rows the next batch has when it is full.
func (m *merger) size() int {
	return int(m.run.loader.split.size(m.begin.Epoch, m.after().Position))
}

// number is that of the next batch in its epoch.
func (m *merger) number() int { return m.run.loader.split.number(m.begin) + m.made }

// after is the place behind the samples taken.
func (m *merger) after() Cursor {
	l := m.run.loader
	at := Cursor{Epoch: m.begin.Epoch, Position: m.begin.Position + m.given*l.split.ranks, track: m.track}
	if l.options.MaxSkipped > 0 {
		at.Skipped = m.skipped
	}
	return at
}

// close lets the batch go. It reports whether the run goes on.
func (m *merger) close(ctx context.Context, last bool) bool {
	m.given += int64(m.rows)
	m.made++
	m.batch.filled.LastOfEpoch = last
	failed, ok := m.jump(ctx)
	after := m.after()
	m.track.pass(m.run.loader.normalize(after), m.shards)
	m.seal(after)
	if failed != nil {
		m.refuse(ctx, failed)
	}
	return ok
}

// leap is jump at the beginning of an epoch, or of the run.
func (m *merger) leap(ctx context.Context) bool {
	failed, ok := m.jump(ctx)
	if failed != nil {
		m.refuse(ctx, failed)
	}
	return ok
}

// jump takes the samples of the steps that Options.Exclude jumps over, and drops them. It
// reports whether the run goes on.
func (m *merger) jump(ctx context.Context) (failed *Error, ok bool) {
	l := m.run.loader
	from := m.after()
	to := l.split.jump(from)
	if to == from.Position {
		return nil, true
	}
	to = min(to, l.split.length(from.Epoch))
	if m.batch != nil {
		m.hand(false) // what is jumped over may take its time
	}
	number := l.split.number(from)
	for at := from; at.Position < to; at = m.after() {
		s, ok := m.next(ctx)
		switch e := &m.entry; {
		case !ok:
			return nil, false
		case s == nil:
			return nil, true
		case e.kind == aFailure:
			return m.failure(s, e.err), false
		case e.kind == aSample:
			s.taken.given-- // it is discarded at its own position
			m.discard(s, e)
			s.taken.given++
			m.given++
		}
	}
	m.made += l.split.number(m.after()) - number
	return nil, true
}

// finish deals with what is left over when all shards have ended. It reports whether the
// run goes on.
func (m *merger) finish(ctx context.Context) bool {
	l := m.run.loader
	first := m.first()
	switch {
	case l.options.Steps > 0:
		m.refuse(ctx, m.outcome(fmt.Errorf("%w: no shard of this rank gave any in a whole pass", ErrNoSamples)))
		return false
	case m.batch == nil && first:
		m.refuse(ctx, m.outcome(m.none()))
		return false
	case m.batch == nil:
		return true
	case l.options.Last != Drop:
		return m.close(ctx, false)
	case first:
		m.refuse(ctx, m.outcome(fmt.Errorf("%w: the shards gave %d, %s", ErrTooFewSamples, m.rows, l.split.takes())))
		return false
	}
	m.batch.drop(m.run)
	m.seal(m.batch.filled.After)
	return true
}

// first reports whether the epoch has had no batch, also before the run: a rank that has no
// samples stays at position 0, but a place behind a batch has a track.
func (m *merger) first() bool { return m.made == 0 && m.begin == Cursor{Epoch: m.begin.Epoch} }

// none is the failure of an epoch without samples.
func (m *merger) none() error {
	if m.skipped > 0 {
		return fmt.Errorf("%w: all %d were left out", ErrNoSamples, m.skipped)
	}
	return fmt.Errorf("%w: all shards are empty", ErrNoSamples)
}

// outcome is a failure that no shard is to blame for.
func (m *merger) outcome(err error) *Error {
	return &Error{
		Epoch: m.begin.Epoch, Batch: m.number(), Sample: -1, Position: m.after().Position,
		Shard: -1, Stage: StageIterate, Err: err,
	}
}

// failure is that of a shard at its next sample.
func (m *merger) failure(s *shard, err error) *Error {
	stage, origin := StageIterate, Origin{}
	if f, ok := err.(*failure); ok {
		stage, origin, err = f.stage, f.origin, f.error
	}
	at := position(s.taken.given, s.number, m.run.loader.shards)
	return &Error{
		Epoch: m.begin.Epoch, Batch: m.number(), Sample: int(at), Position: at,
		Shard: s.number, Origin: origin, Stage: stage, Err: err,
	}
}
