package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/quota"
)

// mixReader reads a shard of a Mix. Which source the next value is of follows from how many
// there were, and from the sources that were left out, each with the number of its turns by
// then. A turn in which the source fails is not over: the source has it again.
type mixReader[T any] struct {
	of      *mixture[T]
	ctx     context.Context // that of Open, which sources are opened with
	pass    loader.Pass
	shard   int
	sources []mixSource[T]

	cursor *quota.Cursor
	n      int64 // turns that are over
	open   int   // sources
	choice int   // whose turn it is, -1 if that isn't known yet
	due    bool  // whether it has the turn by the schedule: there may be none left
	ended  bool
	broken error // why a source could not be opened
	closed error // what closing sources returned
}

type mixSource[T any] struct {
	up    Reader[T] // nil if the pass has not begun, or the source rests
	rests []byte    // its mark then
	last  int64     // the turn in which it was read last
	pass  int
	given bool  // whether the pass has given anything
	left  bool  // out
	limit int64 // of turns
}

type mixMark struct {
	N       int64           `json:"n"`
	Steps   uint64          `json:"steps,string,omitempty"` // mixture.begun
	Ended   bool            `json:"ended,omitempty"`
	Sources []mixSourceMark `json:"sources,omitempty"`
	// Left are the sources left out, each with its turns.
	Left [][2]int64 `json:"left,omitempty"`
}

type mixSourceMark struct {
	Source int  `json:"source"`
	Pass   int  `json:"pass,omitempty"`
	Given  bool `json:"given,omitempty"`
	At     raw  `json:"at"`
}

// plan makes the schedule from the limits, and goes to the place in it.
func (r *mixReader[T]) plan() {
	limits := make([]int64, len(r.sources))
	for i := range r.sources {
		limits[i] = r.sources[i].limit
	}
	lane := quota.Lane{Number: r.shard, Of: r.of.streams[0].shards}
	r.cursor = quota.New(r.of.steps, lane, limits).Cursor()
	r.cursor.Move(r.n)
}

func (r *mixReader[T]) restore(mark []byte) error {
	var m mixMark
	if err := parse("Mix", mark, &m); err != nil {
		return err
	}
	if err := outside("Mix", "n", m.N, 0, quota.Most); err != nil {
		return err
	}
	r.n, r.ended = m.N, m.Ended
	if r.of.begun(r.n, r.shard) != m.Steps {
		return &MarkError{Operator: "Mix", Err: errors.New("the steps that had begun were others")}
	}
	for _, left := range m.Left {
		err := errors.Join(outside("Mix", "left", left[0], 0, int64(len(r.sources)-1)), outside("Mix", "left", left[1], 0, m.N))
		if err != nil {
			return err
		}
		r.sources[left[0]].left, r.sources[left[0]].limit = true, left[1]
	}
	if r.plan(); r.cursor.At() != r.n {
		return &MarkError{Operator: "Mix", Err: fmt.Errorf("n is %d, but the sources left have %d turns", r.n, r.cursor.At())}
	}
	for _, s := range m.Sources {
		if err := r.reopen(s); err != nil {
			return err
		}
	}
	return nil
}

// reopen opens a source where it was.
func (r *mixReader[T]) reopen(m mixSourceMark) error {
	at, err := inner("Mix", m.At)
	err = errors.Join(err, outside("Mix", "source", int64(m.Source), 0, int64(len(r.sources)-1)), outside("Mix", "pass", int64(m.Pass), 0, quota.Most))
	if err != nil {
		return err
	}
	s := &r.sources[m.Source]
	if s.up != nil {
		return &MarkError{Operator: "Mix", Err: fmt.Errorf("source %d stands there twice", m.Source)}
	}
	s.pass, s.given = m.Pass, m.Given
	if r.of.most > 0 {
		s.rests = slices.Clone(at)
		return nil // until it has its turn
	}
	return r.begin(m.Source, at)
}

// begin opens a source's pass.
func (r *mixReader[T]) begin(source int, at []byte) error {
	if r.of.most > 0 && r.open >= r.of.most {
		r.rest()
	}
	s := &r.sources[source]
	up, err := r.of.streams[source].open(r.ctx, again(r.pass, s.pass), r.shard, at)
	if err != nil {
		return err
	}
	s.up, s.rests = up, nil
	r.open++
	return nil
}

// rest closes the source that was not read for longest, of those that have a mark. Who asks
// the Mix for its mark hears why another has none.
func (r *mixReader[T]) rest() {
	var without []bool // a mark; hardly ever any
	for {
		oldest := -1
		for i := range r.sources {
			if s := &r.sources[i]; s.up != nil && (without == nil || !without[i]) && (oldest < 0 || s.last < r.sources[oldest].last) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		s := &r.sources[oldest]
		mark, err := s.up.AppendMark(nil)
		if err == nil {
			s.rests = mark
			r.shut(s)
			return
		}
		if without == nil {
			without = make([]bool, len(r.sources))
		}
		without[oldest] = true
	}
}

// shut closes a source's reader.
func (r *mixReader[T]) shut(s *mixSource[T]) {
	r.closed = errors.Join(r.closed, s.up.Close())
	s.up = nil
	r.open--
}

func (r *mixReader[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	for !r.ended && r.broken == nil {
		if !r.choose() {
			break
		}
		s := &r.sources[r.choice]
		if s.up == nil {
			if r.broken = r.begin(r.choice, s.rests); r.broken != nil {
				break
			}
		}
		if ok, err = s.up.Next(ctx, item); err != nil {
			return false, err
		}
		if ok {
			r.turnOver(s)
			return true, nil
		}
		r.sourceEnded(r.choice)
	}
	return false, r.broken
}

// choose says whose turn it is, false if nobody's.
func (r *mixReader[T]) choose() bool {
	if r.choice >= 0 {
		return true
	}
	r.choice, _, r.due = r.cursor.Next()
	if r.due {
		return true
	}
	// Those that have a weight have ended. Others may get one later.
	for i := range r.sources {
		if r.waits(i) {
			r.choice = i
			return true
		}
	}
	r.choice = -1
	return false
}

func (r *mixReader[T]) turnOver(s *mixSource[T]) {
	s.given, s.last = true, r.n
	if r.due {
		r.n++
	}
	r.choice = -1
}

// waits reports whether the shard doesn't end before the source has ended once.
func (r *mixReader[T]) waits(source int) bool {
	s := &r.sources[source]
	return !s.left && s.pass == 0 && r.of.lastStep(source) >= r.of.step(r.n, r.shard)
}

// sourceEnded closes a source that has no more, and does what the rule says.
func (r *mixReader[T]) sourceEnded(source int) {
	s := &r.sources[source]
	r.shut(s)
	empty := !s.given
	s.given = false
	switch r.of.rule {
	case UntilFirstEnds:
		r.ended = true
	case Once:
		r.leaveOut(source)
	case UntilAllEnded:
		s.pass++
		r.ended = true
		for i := range r.sources {
			r.ended = r.ended && !r.waits(i)
		}
		switch {
		case empty:
			r.leaveOut(source)
		case !r.due:
			r.choice = -1
		}
	}
}

// leaveOut gives a source, whose turn it is, no other.
func (r *mixReader[T]) leaveOut(source int) {
	s := &r.sources[source]
	s.left, s.limit = true, r.cursor.Turns(source)
	if r.due {
		s.limit-- // this one it has not used
	}
	r.choice = -1
	r.plan()
}

func (r *mixReader[T]) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, `{"n":`...)
	out = strconv.AppendInt(out, r.n, 10)
	if steps := r.of.begun(r.n, r.shard); steps != 0 {
		out = append(out, `,"steps":"`...)
		out = append(strconv.AppendUint(out, steps, 10), '"')
	}
	if r.ended {
		out = append(out, `,"ended":true`...)
	}
	out, err := r.appendSources(out)
	if err != nil {
		return dst, err
	}
	return append(r.appendLeft(out), '}'), nil
}

// appendSources appends those that have begun a pass.
func (r *mixReader[T]) appendSources(dst []byte) (_ []byte, err error) {
	separator := `,"sources":[{"source":`
	for i := range r.sources {
		s := &r.sources[i]
		if s.up == nil && s.rests == nil && s.pass == 0 || s.left || r.ended {
			continue
		}
		dst = strconv.AppendInt(append(dst, separator...), int64(i), 10)
		if separator = `,{"source":`; s.pass > 0 {
			dst = strconv.AppendInt(append(dst, `,"pass":`...), int64(s.pass), 10)
		}
		if s.given {
			dst = append(dst, `,"given":true`...)
		}
		dst = append(dst, `,"at":`...)
		if s.up == nil {
			if s.rests == nil {
				dst = append(dst, "null"...)
			}
			dst = append(dst, s.rests...)
		} else if dst, err = s.up.AppendMark(dst); err != nil {
			return dst, err
		}
		dst = append(dst, '}')
	}
	if separator[1] == '{' {
		dst = append(dst, ']')
	}
	return dst, nil
}

func (r *mixReader[T]) appendLeft(dst []byte) []byte {
	separator := `,"left":[[`
	for i := range r.sources {
		if s := &r.sources[i]; s.left && !r.ended {
			dst = strconv.AppendInt(append(dst, separator...), int64(i), 10)
			dst = strconv.AppendInt(append(dst, ','), s.limit, 10)
			dst = append(dst, ']')
			separator = `,[`
		}
	}
	if len(separator) == 2 {
		dst = append(dst, ']')
	}
	return dst
}

func (r *mixReader[T]) Close() error {
	err := r.closed
	for i := range r.sources {
		if up := r.sources[i].up; up != nil {
			err = errors.Join(err, up.Close())
		}
	}
	return err
}
