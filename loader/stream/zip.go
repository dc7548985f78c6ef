package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// Zip is the stream of what f makes of the first values of a and b, of their second values,
// and so on, within each shard; the origin is a's. Streams of which one ends before the other
// don't belong together: then an *UnevenError comes in place of the end. Where a record of
// one can't be read, the one beside it is left out too. loader.Skip, other errors and panics
// of f are treated as by Map. A Flush of b is not passed on.
func Zip[A, B, C any](a Stream[A], b Stream[B], f func(ctx context.Context, a A, b B) (C, error)) Stream[C] {
	open := func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[C], error) {
		return openZip(ctx, a, b, f, pass, shard, mark)
	}
	return then(joined("Zip", a, b, 1), open, needs(f == nil, "Zip", "f")).as("Zip")
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

type zipped[A, B, C any] struct {
	f     func(context.Context, A, B) (C, error)
	a     Reader[A]
	b     Reader[B]
	inA   Item[A]
	inB   Item[B]
	shard int
	// owed is how many records of b stand beside those of a that have failed.
	owed int
	footing
	ended  bool
	uneven error
}

type zipMark struct {
	Owed int64 `json:"owed,omitempty"`
	A    raw   `json:"a"`
	B    raw   `json:"b"`
}

func openZip[A, B, C any](ctx context.Context, a Stream[A], b Stream[B], f func(context.Context, A, B) (C, error),
	pass loader.Pass, shard int, mark []byte,
) (*zipped[A, B, C], error) {
	var atA, atB []byte
	var m zipMark
	if mark != nil {
		err := parse("Zip", mark, &m)
		if err != nil {
			return nil, err
		}
		var errB error
		atA, err = inner("Zip", m.A)
		atB, errB = inner("Zip", m.B)
		if err = errors.Join(err, errB, outside("Zip", "owed", m.Owed, 0, mostFailed)); err != nil {
			return nil, err
		}
	}
	readerA, err := a.open(ctx, pass, shard, atA)
	if err != nil {
		return nil, err
	}
	z := &zipped[A, B, C]{f: f, a: readerA, shard: shard, owed: int(m.Owed)}
	return z, orClose(readerA, func() (err error) {
		z.b, err = b.open(ctx, pass, shard, atB)
		return err
	})
}

func (z *zipped[A, B, C]) Next(ctx context.Context, item *Item[C]) (ok bool, err error) {
	for {
		if ok, err = z.both(ctx); !ok || err != nil {
			return false, err
		}
		if err = z.call(ctx, item); err == nil {
			return true, nil
		}
		if !leavesOut(err) {
			return false, located(err, z.inA.Origin)
		}
		if err := context.Cause(ctx); err != nil { // else f could leave out values for ever
			return false, err
		}
	}
}

func (z *zipped[A, B, C]) call(ctx context.Context, item *Item[C]) (err error) {
	defer recovered(&err)
	item.Origin = z.inA.Origin
	item.Value, err = z.f(ctx, z.inA.Value, z.inB.Value)
	return err
}

// both reads the next of a and that of b.
func (z *zipped[A, B, C]) both(ctx context.Context) (ok bool, err error) {
	if z.ended {
		return false, z.uneven
	}
	okA, err := z.a.Next(ctx, &z.inA)
	if err != nil {
		if err != loader.Flush && z.moved(z.owed > 0, z.a) {
			z.owed++
		}
		return false, err
	}
	for ; z.owed > 0; z.owed-- {
		if ok, err := z.second(ctx); !ok && err == nil {
			break
		}
	}
	okB, err := z.second(ctx)
	if err != nil {
		return false, err
	}
	switch {
	case okA && okB:
		return true, nil
	case okA:
		z.uneven = &UnevenError{Shard: z.shard, Longer: 0}
	case okB:
		z.uneven = &UnevenError{Shard: z.shard, Longer: 1}
	}
	z.ended = true
	return false, z.uneven
}

// second reads the next of b.
func (z *zipped[A, B, C]) second(ctx context.Context) (ok bool, err error) {
	for {
		if ok, err = z.b.Next(ctx, &z.inB); err != loader.Flush {
			return ok, err
		}
	}
}

func (z *zipped[A, B, C]) AppendMark(dst []byte) ([]byte, error) {
	if z.uneven != nil {
		return dst, loader.ErrNoMark
	}
	out := append(dst, '{')
	if z.owed > 0 {
		out = append(out, `"owed":`...)
		out = append(strconv.AppendInt(out, int64(z.owed), 10), ',')
	}
	out, err := z.a.AppendMark(append(out, `"a":`...))
	if err != nil {
		return dst, err
	}
	out, err = z.b.AppendMark(append(out, `,"b":`...))
	if err != nil {
		return dst, err
	}
	return append(out, '}'), nil
}

func (z *zipped[A, B, C]) Close() error { return errors.Join(z.a.Close(), z.b.Close()) }
