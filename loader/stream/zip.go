package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/leat-go/leat/loader"
)

// Zip is the stream of what f makes of the first values of a and b, of their second values,
// and so on, within each shard; the origin is a's. Streams of which one ends before the other
// don't belong together: then an *UnevenError comes in place of the end. Where a record of
// one can't be read, the one beside it is left out too. loader.Skip, other errors and panics
// of f are treated as by Map. A Flush of b is not passed on.
func Zip[A, B, C any](a Stream[A], b Stream[B], f func(ctx context.Context, a A, b B) (C, error)) Stream[C] {
	open := func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[pair[A, B]], error) {
		return openZip(ctx, a, b, pass, shard, mark)
	}
	pairs := then(joined("Zip", a, b, 1), open, needs(f == nil, "Zip", "f")).as("Zip")
	return Map(pairs, func(ctx context.Context, p pair[A, B]) (C, error) { return f(ctx, p.a, p.b) })
}

// UnevenError is a shard in which one stream of a Zip ends before the other.
type UnevenError struct {
	// Shard is its number.
	Shard int
	// Longer is 0 if the first stream has more values, 1 if the second has.
	Longer int
}

// Error implements error.
func (e *UnevenError) Error() string {
	return fmt.Sprintf("stream: Zip: in shard %d stream %d has more values than the other", e.Shard, e.Longer)
}

type pair[A, B any] struct {
	a A
	b B
}

type zipped[A, B any] struct {
	a     Reader[A]
	b     Reader[B]
	shard int
	// owed is how many records of b stand beside those of a that have failed.
	owed int
	// unsettled is set behind a failure: whether that has cost a record, the next call shows.
	unsettled bool
	ended     bool
	uneven    error
}

type zipMark struct {
	A raw `json:"a"`
	B raw `json:"b"`
}

func openZip[A, B any](ctx context.Context, a Stream[A], b Stream[B], pass loader.Pass, shard int, mark []byte) (*zipped[A, B], error) {
	var atA, atB []byte
	if mark != nil {
		var m zipMark
		err := parse("Zip", mark, &m)
		if err != nil {
			return nil, err
		}
		var errB error
		atA, err = inner("Zip", m.A)
		atB, errB = inner("Zip", m.B)
		if err = errors.Join(err, errB); err != nil {
			return nil, err
		}
	}
	readerA, err := a.open(ctx, pass, shard, atA)
	if err != nil {
		return nil, err
	}
	z := &zipped[A, B]{a: readerA, shard: shard}
	return z, orClose(readerA, func() (err error) {
		z.b, err = b.open(ctx, pass, shard, atB)
		return err
	})
}

func (z *zipped[A, B]) Next(ctx context.Context) (Item[pair[A, B]], bool, error) {
	var none Item[pair[A, B]]
	if z.ended {
		return none, false, z.uneven
	}
	a, okA, err := z.a.Next(ctx)
	if err != nil {
		if err != loader.Flush {
			z.owed++
			z.unsettled = true
		}
		return none, false, err
	}
	for ; z.owed > 0; z.owed-- {
		if _, ok, err := z.second(ctx); !ok && err == nil {
			break
		}
	}
	b, okB, err := z.second(ctx)
	if err != nil {
		z.unsettled = true
		return none, false, err
	}
	z.unsettled = false
	switch {
	case okA && okB:
		return Item[pair[A, B]]{Value: pair[A, B]{a.Value, b.Value}, Origin: a.Origin}, true, nil
	case okA:
		z.uneven = &UnevenError{Shard: z.shard, Longer: 0}
	case okB:
		z.uneven = &UnevenError{Shard: z.shard, Longer: 1}
	}
	z.ended = true
	return none, false, z.uneven
}

// second is the next of b.
func (z *zipped[A, B]) second(ctx context.Context) (Item[B], bool, error) {
	for {
		item, ok, err := z.b.Next(ctx)
		if err != loader.Flush {
			return item, ok, err
		}
	}
}

func (z *zipped[A, B]) AppendMark(dst []byte) ([]byte, error) {
	if z.unsettled || z.uneven != nil {
		return dst, loader.ErrNoMark
	}
	out, err := z.a.AppendMark(append(dst, `{"a":`...))
	if err != nil {
		return dst, err
	}
	out, err = z.b.AppendMark(append(out, `,"b":`...))
	if err != nil {
		return dst, err
	}
	return append(out, '}'), nil
}

func (z *zipped[A, B]) Close() error { return errors.Join(z.a.Close(), z.b.Close()) }
