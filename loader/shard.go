package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// noteEvery is how many records lie between two marks of a shard: a run that goes on reads
// at most so many again, and leaves them out.
const noteEvery = 256

// maxFailures is how often in a row a reader may fail without getting on.
const maxFailures = 100

// shard reads one shard ahead of the merger, which starts its goroutine. The Run counts it.
type shard struct {
	run    *Run
	number int
	queue  queue
	taken  count // what the merger has taken; the merger's

	// The goroutine's own.
	track    *track
	slot     int // in track
	reader   ShardReader
	pass     int
	read     int64 // records of the pass, from where the reader began
	ahead    int64 // samples given, those in the queue too
	noted    int64 // read at the last mark
	mark     []byte
	skipped  int   // samples left out since the last entry
	lastSkip error // why the last of them was
	scratch  *scratch
	limit    *limit // of Encode, nil if there is none
	origin   Origin // of the sample that is being encoded
	standing []byte // the mark when the reader last failed very often in a row,
	stood    []byte // and the one before, whose memory is used again

	// What a report on a shard that hangs needs; see suspect.
	goroutine atomic.Uint64
	inside    atomic.Pointer[string] // the stage of user code that it is in
	position  progress

	since atomic.Int64 // since when, after the Run's start, it works; 0 while it waits
	busy  atomic.Int64
}

// begin sets the shard at a place. Its goroutine does not run.
func (s *shard) begin(t *track, slot int, from ShardMark) {
	s.track, s.slot = t, slot
	s.taken = count{given: from.Samples, pass: from.Pass, read: from.Leave, ended: from.Ended}
	s.ahead = from.Samples
	s.skipped, s.lastSkip = 0, nil
}

// loop reads until the shard ends, or fails, or ctx is done.
func (s *shard) loop(ctx context.Context, from ShardMark) {
	s.goroutine.Store(goroutineID())
	s.works(true)
	returned := false
	defer func() {
		if !returned {
			s.fail(ctx, caught(recover()))
		}
		s.inside.Store(nil)
		s.works(false)
		s.limit.end()
	}()
	for next := false; s.readPass(ctx, from, next); next = true {
		from = ShardMark{Pass: s.pass + 1}
	}
	returned = true
}

// readPass reads one pass from a mark on; next says that it is not the first of the Run. It
// reports whether another is to follow.
func (s *shard) readPass(ctx context.Context, from ShardMark, next bool) (another bool) {
	s.enter(&stageIterate)
	s.pass, s.read, s.noted = from.Pass, 0, 0
	s.standing = s.standing[:0] // a place of another pass is another place
	if next {
		s.track.turn(s.slot, s.pass)
	}
	o := &s.run.loader.options
	reader, err := s.run.loader.stream.Open(ctx, Pass{Epoch: s.pass, Seed: o.Seed}, s.number, from.Mark)
	if err == nil && isNil(reader) {
		err = errNoReader
	}
	if err != nil {
		s.fail(ctx, err)
		return false
	}
	s.reader = reader
	defer s.close()
	if !s.leaveOut(ctx, from.Leave) {
		return false
	}
	before := s.ahead
	if !s.samples(ctx) {
		return false
	}
	if whole := from.Mark == nil && from.Leave == 0; o.Steps > 0 && !(whole && s.ahead == before) {
		return true
	}
	s.put(ctx, anEnd, nil, nil)
	return false
}

// close closes the reader. Nobody waits for an error of it but Run.Close.
func (s *shard) close() {
	defer s.inside.Store(s.inside.Swap(&stageClose)) // a panic that is under way is of that stage
	reader := s.reader
	s.reader = nil
	returned := false
	defer func() {
		if !returned {
			s.run.late(s.failure(StageClose, caught(recover()), Origin{}))
		}
	}()
	if err := reader.Close(); err != nil {
		s.run.late(s.failure(StageClose, err, Origin{}))
	}
	returned = true
}

// leaveOut passes over the records behind the mark that were delivered before.
func (s *shard) leaveOut(ctx context.Context, records int64) bool {
	for s.read < records {
		if ctx.Err() != nil {
			return false
		}
		sample, ok, err := s.reader.Next(ctx)
		switch {
		case err == Flush:
			continue
		case err != nil && s.run.loader.options.OnError != SkipFailed:
			s.fail(ctx, err)
			return false
		case err == nil && !ok:
			s.fail(ctx, fmt.Errorf("the shard ended with record %d where it is to go on behind %d", s.read, records))
			return false
		case err == nil && sample != nil:
			s.discard(ctx, sample)
		}
		s.read++
	}
	return true
}

// samples puts what the reader gives into the queue. It reports whether the shard came to
// the end of the pass.
func (s *shard) samples(ctx context.Context) bool {
	failures := 0
	// To look at ctx takes as long as all else that is done for a small sample.
	for looked := 0; looked%16 != 0 || ctx.Err() == nil; looked++ {
		if s.read-s.noted >= noteEvery && !s.note(ctx) {
			return false
		}
		s.position.set(s.at())
		sample, ok, err := s.reader.Next(ctx)
		switch {
		case err == Flush:
			if !s.put(ctx, aFlush, nil, nil) {
				return false
			}
			continue
		case err != nil:
			s.read++
			if failures++; !s.skip(ctx, StageIterate, err, originIn(err), failures) {
				return false
			}
			continue
		case !ok:
			return true
		case sample == nil:
			s.fail(ctx, errNoEncoder)
			return false
		}
		failures = 0
		s.read++
		if s.run.loader.excluded.record(sample) {
			s.discard(ctx, sample)
			continue
		}
		if s.scratch != nil {
			if sample, ok = s.encode(ctx, sample); !ok {
				return false
			}
			if sample == nil {
				continue
			}
		}
		if !s.put(ctx, aSample, sample, nil) {
			s.discard(ctx, sample)
			return false
		}
		s.ahead++
	}
	return false
}

// at is the position of the next sample.
func (s *shard) at() int64 { return position(s.ahead, s.number, s.run.loader.shards) }

// position is that of a shard's sample number n.
func position(n int64, shard, shards int) int64 { return n*int64(shards) + int64(shard) }

// note has the reader mark its place.
func (s *shard) note(ctx context.Context) bool {
	s.noted = s.read
	mark, err := s.reader.AppendMark(s.mark[:0])
	switch {
	case errors.Is(err, ErrNoMark):
		s.track.unmarked(s.slot)
		return true
	case err == nil && !json.Valid(mark):
		err = errNoJSON
	}
	if err != nil {
		s.fail(ctx, err)
		return false
	}
	s.mark = mark
	s.track.note(s.slot, s.pass, s.read, mark)
	return true
}

// put appends to the queue a sample, or a failure, or neither, and waits until there is room.
// It reports false when ctx is done.
func (s *shard) put(ctx context.Context, kind kind, sample Encoder, err error) bool {
	e := s.queue.next()
	for e == nil {
		if !s.awaitRoom(ctx) {
			return false
		}
		e = s.queue.next()
	}
	e.kind, e.encoder, e.err = kind, sample, err
	e.pass, e.read = s.pass, s.read
	e.skipped, s.skipped = int32(min(s.skipped, math.MaxInt32)), 0
	if s.lastSkip != nil {
		if err == nil {
			e.err = s.lastSkip
		}
		s.lastSkip = nil
	}
	s.queue.put()
	return true
}

func (s *shard) awaitRoom(ctx context.Context) bool {
	if !s.queue.awaitRoom() {
		return true
	}
	stage := s.inside.Swap(nil)
	s.works(false)
	defer s.works(true)
	defer s.inside.Store(stage)
	select {
	case <-s.queue.room:
		return true
	case <-ctx.Done():
		return false
	}
}

// fail puts the shard's failure behind what it has read. It is called inside user code, or
// where that has panicked.
func (s *shard) fail(ctx context.Context, err error) {
	stage := *s.inside.Load()
	if !s.put(ctx, aFailure, nil, &failure{err, stage, s.origin}) || ctx.Err() != nil {
		// Nobody will see it, and an error may be ctx's own, but not a panic.
		if _, panicked := err.(*PanicError); panicked {
			s.run.late(s.failure(stage, err, Origin{}))
		}
	}
}

// discard ends a sample that no batch takes, and waits where Close is slower than the
// reader: what a sample owns is scarce.
func (s *shard) discard(ctx context.Context, sample Encoder) {
	d := s.run.disposal
	at := s.at()
	d.add(sample, s.pass, s.run.loader.split.number(Cursor{Position: at}), at)
	if !d.crowded() {
		return
	}
	for d.crowded() {
		select {
		case <-d.room:
		case <-ctx.Done():
			return
		}
	}
	wake(d.room) // other shards may wait too
}
