package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// Concat is the streams one after the other: each shard gives what the shard of that number
// gives in the first stream, and then in the next. A stream is opened when the one before
// has ended. All have the same number of shards.
func Concat[T any](first Stream[T], more ...Stream[T]) Stream[T] {
	all := append([]Stream[T]{first}, more...)
	return together("Concat", all, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		return startSequence(ctx, "Concat", mark, len(all), func(ctx context.Context, part int, mark []byte) (Reader[T], error) {
			return all[part].open(ctx, pass, shard, mark)
		})
	}).as("Concat")
}

// Repeat is s several times, one after the other. Each is a pass of its own, so what
// shuffles does it anew; a pass that gives nothing is the last.
func Repeat[T any](s Stream[T], times int) Stream[T] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		r, err := startSequence(ctx, "Repeat", mark, times, func(ctx context.Context, part int, mark []byte) (Reader[T], error) {
			return s.open(ctx, again(pass, part), shard, mark)
		})
		if err != nil {
			return nil, err
		}
		r.stopsEmpty = true
		return r, nil
	}, check(times >= 1, "Repeat", "times", times, "1 or more")).as("Repeat", uint64(times))
}

// Fewer joins the shards of s to a smaller number of them: shard i has shard i of s, shard
// i+shards, and so on, one after the other, of which one is open at a time. It is for
// thousands of files, since each shard that a loader reads has a goroutine and an open reader.
func Fewer[T any](s Stream[T], shards int) Stream[T] {
	out := then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		parts := (s.shards - shard + shards - 1) / shards
		return startSequence(ctx, "Fewer", mark, parts, func(ctx context.Context, part int, mark []byte) (Reader[T], error) {
			return s.open(ctx, pass, shard+part*shards, mark)
		})
	}, check(shards >= 1 && (shards <= s.shards || s.shards < 1), "Fewer", "shards", shards, fmt.Sprintf("1 to %d, the number of shards", s.shards))).as("Fewer", uint64(shards))
	out.shards = shards
	return out
}

// sequence reads a shard's parts, one after the other. Only one is open at a time.
type sequence[T any] struct {
	operator   string
	parts      int
	part       int
	open       func(ctx context.Context, part int, mark []byte) (Reader[T], error)
	up         Reader[T] // nil if the part must be opened first, or all have ended
	empty      bool      // whether the part has given nothing so far
	stopsEmpty bool      // whether an empty part is the last
	failed     error     // why a part could not be opened: nothing comes after it
	closed     error     // what closing parts returned, for Close
}

// sequenceMark is its mark. Where At is null the part has not begun.
type sequenceMark struct {
	Part  int64 `json:"part"`
	Empty bool  `json:"empty,omitempty"`
	At    raw   `json:"at"`
}

func startSequence[T any](ctx context.Context, operator string, mark []byte, parts int,
	open func(ctx context.Context, part int, mark []byte) (Reader[T], error),
) (*sequence[T], error) {
	s := &sequence[T]{operator: operator, parts: parts, open: open, empty: true}
	if mark == nil {
		return s, s.start(ctx, nil)
	}
	var m sequenceMark
	if err := parse(operator, mark, &m); err != nil {
		return nil, err
	}
	at, err := inner(operator, m.At)
	if err = errors.Join(err, outside(operator, "part", m.Part, 0, int64(parts))); err != nil {
		return nil, err
	}
	s.part, s.empty = int(m.Part), m.Empty
	if s.part == parts {
		return s, nil
	}
	return s, s.start(ctx, at)
}

func (s *sequence[T]) start(ctx context.Context, mark []byte) error {
	up, err := s.open(ctx, s.part, mark)
	if err != nil {
		s.failed = err
		return err
	}
	s.up = up
	return nil
}

func (s *sequence[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	for s.part < s.parts && s.failed == nil {
		if s.up == nil {
			if err = s.start(ctx, nil); err != nil {
				return false, err
			}
		}
		if ok, err = s.up.Next(ctx, item); err != nil {
			return false, err
		}
		if ok {
			s.empty = false
			return true, nil
		}
		s.turn()
	}
	return false, s.failed
}

// turn closes the part that has ended and goes to the next.
func (s *sequence[T]) turn() {
	s.closed = errors.Join(s.closed, s.up.Close())
	s.up = nil
	s.part++
	if s.empty && s.stopsEmpty {
		s.part = s.parts
	}
	s.empty = true
}

func (s *sequence[T]) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, `{"part":`...)
	out = strconv.AppendInt(out, int64(s.part), 10)
	if s.empty {
		out = append(out, `,"empty":true`...)
	}
	out = append(out, `,"at":`...)
	if s.up == nil {
		return append(out, "null}"...), nil
	}
	out, err := s.up.AppendMark(out)
	if err != nil {
		return dst, err
	}
	return append(out, '}'), nil
}

func (s *sequence[T]) Close() error {
	if s.up == nil {
		return s.closed
	}
	return errors.Join(s.closed, s.up.Close())
}
