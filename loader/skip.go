package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// SkipError is the sample that was one too many for Options.MaxSkipped.
type SkipError struct {
	// Max is the option.
	Max int
	// Err is why the sample was left out.
	Err error
}

// Error implements error.
func (e *SkipError) Error() string {
	return fmt.Sprintf("one more sample to leave out than MaxSkipped, which is %d: %v", e.Max, e.Err)
}

// Unwrap returns the cause.
func (e *SkipError) Unwrap() error { return e.Err }

// Skipped is a sample that was left out. It prints as one line, also by %+v.
type Skipped struct {
	// Shard is the one that it belongs to, Pass its pass.
	Shard, Pass int
	// Position is where the sample behind it is.
	Position int64
	// Origin is where it comes from, if that is known.
	Origin Origin
	// Err is why it was left out: an error that is Skip, or its failure.
	Err error
}

// String says which sample was left out, and why.
func (s Skipped) String() string {
	origin := ""
	if s.Origin != (Origin{}) {
		origin = ", " + s.Origin.String()
	}
	return fmt.Sprintf("shard %d, pass %d, before position %d%s: %v", s.Shard, s.Pass, s.Position, origin, s.Err)
}

// mostSkips is how many samples that were left out are told one by one.
const mostSkips = 16

// skips is the first samples that a Run has left out.
type skips struct {
	mu    sync.Mutex
	count int64
	first []Skipped
}

func (s *skips) note(what Skipped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if len(s.first) < mostSkips {
		s.first = append(s.first, what)
	}
}

// get is how many there were, and the first of them.
func (s *skips) get() (int64, []Skipped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count, append([]Skipped(nil), s.first...)
}

// scratch is where a shard encodes its samples if some may have to be left out: a row of a
// batch can't be, once it is handed over.
type scratch struct {
	row Row

	mu   sync.Mutex
	free []*encoded
}

// encoded is a sample that was encoded by its shard. It is the Encoder that copies it to
// its row.
type encoded struct {
	scratch *scratch
	row     Row // of which only what can be read is set
}

func newScratch(l *Loader) *scratch {
	s := &scratch{row: newRow(l.single, l.options.Seed)}
	s.row.random = rand.New(&s.row.source)
	return s
}

// get is memory for a sample.
func (s *scratch) get() *encoded {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.free) - 1
	if last < 0 {
		l := s.row.layout
		return &encoded{scratch: s, row: Row{layout: l, mem: aligned(l.bytes), lengths: newLengths(l)}}
	}
	e := s.free[last]
	s.free = s.free[:last]
	return e
}

func (s *scratch) put(e *encoded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, e)
}

// Encode implements Encoder.
func (e *encoded) Encode(_ context.Context, row *Row) error {
	copy(row.lengths, e.row.lengths)
	for field := range row.layout.Written() {
		row.asked.add(field)
		copy(row.used(field), e.row.used(field))
	}
	e.scratch.put(e)
	return nil
}

// encode encodes a sample. It returns nil for one that is left out, and false if the shard
// does not go on.
func (s *shard) encode(ctx context.Context, sample Encoder) (Encoder, bool) {
	s.enter(&stageEncode)
	to := s.scratch.get()
	err := s.try(ctx, sample, to)
	s.enter(&stageIterate)
	origin := s.origin
	s.origin = Origin{}
	switch {
	case err == nil:
		return to, true
	case ctx.Err() != nil:
		return nil, false
	}
	s.scratch.put(to)
	return nil, s.skip(ctx, StageEncode, err, origin, 0)
}

// try encodes a sample, and turns a panic into an error. Goexit goes on.
func (s *shard) try(ctx context.Context, sample Encoder, to *encoded) (err error) {
	given, returned := false, false
	defer func() {
		if !returned {
			err = caught(recover())
		}
		if !given {
			s.discard(ctx, sample)
		}
	}()
	s.origin = originOf(sample)
	row := &s.scratch.row
	row.mem, row.epoch = to.row.mem, s.pass
	row.move(0, s.at())
	given = true // it is Encode's from here on
	if s.limit != nil {
		err = s.limit.encode(ctx, sample, row)
	} else {
		err = sample.Encode(ctx, row)
	}
	if err == nil {
		err = row.unwritten()
	}
	copy(to.row.lengths, row.lengths)
	returned = true
	return err
}

// skip leaves a record out, if that is what is to become of it, and else puts its failure
// into the queue. failures is how often in a row the reader has failed. It reports whether
// the shard goes on.
func (s *shard) skip(ctx context.Context, stage string, err error, origin Origin, failures int) bool {
	o := &s.run.loader.options
	if ctx.Err() != nil {
		return false // the error may be its own
	}
	refuse := func(err error) bool {
		s.put(ctx, aFailure, nil, &failure{err, stage, origin})
		return false
	}
	switch {
	case hopeless(err) || o.OnError != SkipFailed && !(stage == StageEncode && errors.Is(err, Skip)):
		return refuse(err)
	case failures >= maxFailures && !s.gotOn():
		return refuse(fmt.Errorf("the reader has failed %d times without getting on: %w", failures, err))
	}
	s.run.skips.note(Skipped{Shard: s.number, Pass: s.pass, Position: s.at(), Origin: origin, Err: err})
	s.skipped++
	s.lastSkip = err
	if o.MaxSkipped > 0 && s.skipped > o.MaxSkipped { // the merger waits for a sample to count them with
		s.skipped--
		return refuse(&SkipError{Max: o.MaxSkipped, Err: err})
	}
	return true
}

// gotOn reports whether the reader is at another place than when it was asked last.
func (s *shard) gotOn() bool {
	mark, err := s.reader.AppendMark(s.stood[:0])
	moved := err == nil && !bytes.Equal(mark, s.standing)
	s.stood, s.standing = s.standing, mark
	return moved
}

// originOf is where a sample comes from, if it knows.
func originOf(sample Encoder) Origin {
	if l, ok := sample.(Located); ok {
		return l.Origin()
	}
	return Origin{}
}

// originIn is where a record comes from that a reader could not read, if the error knows.
func originIn(err error) Origin {
	var l Located
	if errors.As(err, &l) {
		return l.Origin()
	}
	return Origin{}
}
