package stream

import (
	"context"
	"math/rand/v2"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Map is the stream of what f makes of the values of s. An error that is loader.Skip leaves
// the value out; any other, and a panic, is the failure of this value alone. f is called by
// several goroutines at once, one for each shard that is read.
func Map[T, U any](s Stream[T], f func(ctx context.Context, value T) (U, error)) Stream[U] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[U], error) {
		up, err := s.open(ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		return &mapped[T, U]{up: up, f: f}, nil
	}, needs(f == nil, "Map", "f")).as("Map")
}

// mapped has no state of its own: its marks are those of up.
type mapped[T, U any] struct {
	up Reader[T]
	f  func(context.Context, T) (U, error)
	in Item[T]
}

func (m *mapped[T, U]) AppendMark(dst []byte) ([]byte, error) { return m.up.AppendMark(dst) }
func (m *mapped[T, U]) Close() error                          { return m.up.Close() }

func (m *mapped[T, U]) Next(ctx context.Context, item *Item[U]) (ok bool, err error) {
	for {
		if ok, err = m.up.Next(ctx, &m.in); !ok || err != nil {
			return false, err
		}
		if err = m.call(ctx, item); err == nil {
			return true, nil
		}
		if !leavesOut(err) {
			return false, located(err, m.in.Origin)
		}
		if err := context.Cause(ctx); err != nil { // else f could leave out values for ever
			return false, err
		}
	}
}

func (m *mapped[T, U]) call(ctx context.Context, item *Item[U]) (err error) {
	defer recovered(&err)
	item.Origin = m.in.Origin
	item.Value, err = m.f(ctx, m.in.Value)
	return err
}

// MapScratch is Map with scratch memory: f is lent what scratch has made for the reader of
// the shard, which nobody else uses meanwhile. What f returns must not refer to it.
func MapScratch[T, U, S any](s Stream[T], scratch func() S, f func(ctx context.Context, scratch S, value T) (U, error)) Stream[U] {
	return then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[U], error) {
		up, err := s.open(ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		m := &mapped[T, U]{up: up}
		memory, err := call(scratch)
		if err != nil {
			return nil, closing(up, err)
		}
		m.f = func(ctx context.Context, value T) (U, error) { return f(ctx, memory, value) }
		return m, nil
	}, needs(scratch == nil, "MapScratch", "scratch"), needs(f == nil, "MapScratch", "f")).as("Map")
}

// MapRand is Map with random numbers. Those of a value depend on the seed, the epoch, the
// shard and the value's number in it, and on how many operators before this one draw
// random numbers; so they are the same however the pass is read. random is lent to f until
// it returns.
func MapRand[T, U any](s Stream[T], f func(ctx context.Context, random *rand.Rand, value T) (U, error)) Stream[U] {
	draws := s.draws
	out := then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[U], error) {
		up, n, err := openNumbered("MapRand", s, ctx, pass, shard, mark)
		if err != nil {
			return nil, err
		}
		m := &randomized[T, U]{n: n}
		draw := newDraw(pass, shard, draws)
		m.up = up
		m.f = func(ctx context.Context, value T) (U, error) {
			draw.seed(m.n)
			m.n++
			return f(ctx, draw.random, value)
		}
		return m, nil
	}, needs(f == nil, "MapRand", "f")).as("MapRand")
	out.draws++
	return out
}

// randomized counts the values that f was called for.
type randomized[T, U any] struct {
	mapped[T, U]
	n uint64
}

func (m *randomized[T, U]) AppendMark(dst []byte) ([]byte, error) {
	return appendNumbered(dst, m.n, m.up)
}

// draw makes the random numbers of an operator in a pass of a shard, value by value.
type draw struct {
	source      rand.PCG
	random      *rand.Rand // on source
	first, last uint64     // hashes that lack the value's number
}

func newDraw(pass loader.Pass, shard, draws int) *draw {
	key := drawKey(pass, shard, draws)
	d := &draw{first: mix.Fold(mix.Begin(2), key), last: mix.Fold(mix.Begin(3), key)}
	d.random = rand.New(&d.source)
	return d
}

// seed begins the numbers of value number n.
func (d *draw) seed(n uint64) {
	d.source.Seed(mix.Fold(d.first, n), mix.Fold(mix.Fold(d.last, n), 1))
}

// drawKey is what the random numbers of an operator depend on, in a pass of a shard.
func drawKey(pass loader.Pass, shard, draws int) uint64 {
	return mix.Hash(pass.Seed, uint64(pass.Epoch), uint64(shard), uint64(draws))
}
