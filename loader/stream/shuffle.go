package stream

import (
	"context"
	"errors"
	"math/bits"
	"slices"
	"strconv"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Shuffle gives the values of each shard in a random order, through a buffer of size values
// for the shard: each is drawn from the buffer, and the next takes its place. The order is a
// function of the seed, the epoch, the shard, and of how many operators before this one draw
// random numbers. A size beyond a shard's length shuffles all of it.
//
// A mark holds none of the values: from an older place of s they are read again, as many as
// the oldest value in the buffer is behind; about size·ln(size) are usual.
func Shuffle[T any](s Stream[T], size int) Stream[T] {
	draws := s.draws
	out := then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		b := &shuffled[T]{size: int64(size), key: mix.Fold(mix.Begin(2), drawKey(pass, shard, draws))}
		open := func(mark []byte) (Reader[T], error) { return s.open(ctx, pass, shard, mark) }
		return b, b.start(ctx, open, mark)
	}, check(size >= 1, "Shuffle", "size", size, "1 or more")).as("Shuffle", uint64(size))
	out.draws++
	return out
}

// shuffled is a shuffle buffer. While s lasts, draw k takes a slot, and item size+k takes
// its place. Then each draw takes a slot of those that are left, and the last fills it.
// So which items are in the buffer, and where, follows from the two counts.
type shuffled[T any] struct {
	*trail[T]
	size  int64
	key   uint64    // a mix.Hash that only lacks the number of the draw
	slots []Item[T] // size of them, or fewer at the beginning and at the end
	// numbers are those of the items in the shard, for as long as it lasts. They lie apart
	// because they are all looked through now and then.
	numbers []int64
	drawn   int64
	ended   bool  // whether there is no more to read
	kept    int64 // drawn, when the oldest was last looked for
}

// heldItem is an item in the buffer, and its number in the shard.
type heldItem[T any] struct {
	item   Item[T]
	number int64
}

type shuffledMark struct {
	Drawn int64 `json:"drawn"`
	trailMark
}

// places are as many to a buffer.
const shufflePlaces = 8

func (b *shuffled[T]) start(ctx context.Context, open func([]byte) (Reader[T], error), mark []byte) error {
	every := b.size / shufflePlaces
	if mark == nil {
		up, err := open(nil)
		if err == nil {
			b.trail = newTrail(up, 0, nil, every)
		}
		return err
	}
	var m shuffledMark
	if err := parse("Shuffle", mark, &m); err != nil {
		return err
	}
	slots := map[int64]heldItem[T]{} // a slice would be as large as the mark says
	t, err := openTrail(ctx, "Shuffle", open, m.trailMark, every, func(number int64, item Item[T]) error {
		slots[b.place(number)] = heldItem[T]{item: item, number: number}
		return nil
	})
	if err != nil {
		return err
	}
	b.trail = t
	if err := b.restore(slots, m.Drawn); err != nil {
		return closing(t, &MarkError{Operator: "Shuffle", Err: err})
	}
	return nil
}

// place is the slot that an item is put into.
func (b *shuffled[T]) place(number int64) int64 {
	if number < b.size {
		return number
	}
	return b.draw(number-b.size, b.size)
}

// draw is the slot of n that draw k takes.
func (b *shuffled[T]) draw(k, n int64) int64 {
	hi, _ := bits.Mul64(mix.Fold(b.key, uint64(k)), uint64(n))
	return int64(hi)
}

// restore makes the buffer of what its slots held when the last item was read.
func (b *shuffled[T]) restore(slots map[int64]heldItem[T], drawn int64) error {
	n := min(b.items, b.size)
	if int64(len(slots)) != n {
		return errors.New("the items that it is to read again are not all that it holds")
	}
	b.drawn = b.items - n // with a new item each
	if drawn < b.drawn || drawn-b.drawn > n {
		return errors.New("it has drawn more or fewer items than it can have")
	}
	for i := range n {
		b.slots = append(b.slots, slots[i].item)
		b.numbers = append(b.numbers, slots[i].number)
	}
	b.ended = drawn > b.drawn
	for b.drawn < drawn {
		b.take()
	}
	return nil
}

func (b *shuffled[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	for !b.ended {
		ok, err = b.trail.next(ctx, item)
		switch {
		case err != nil:
			return false, err
		case !ok:
			b.ended = true
		case int64(len(b.slots)) < b.size:
			b.slots = append(b.slots, *item)
			b.numbers = append(b.numbers, b.items-1)
		default:
			b.exchange(item)
			return true, nil
		}
	}
	if len(b.slots) == 0 {
		return false, nil
	}
	*item = b.take()
	return true, nil
}

// exchange draws an item and puts the one that was read last in its place.
func (b *shuffled[T]) exchange(item *Item[T]) {
	i := b.draw(b.drawn, b.size)
	slot := &b.slots[i]
	*slot, *item = *item, *slot
	b.numbers[i] = b.items - 1
	b.drawn++
	if b.drawn-b.kept >= b.every {
		b.kept = b.drawn
		b.forget(b.oldest())
	}
}

// oldest is the number of the oldest item in the buffer.
func (b *shuffled[T]) oldest() int64 { return slices.Min(b.numbers) }

// take draws one of the items that are left when there are no more. From then on nothing
// is forgotten, as restore begins with what was in the buffer then.
func (b *shuffled[T]) take() Item[T] {
	last := len(b.slots) - 1
	i := b.draw(b.drawn, int64(len(b.slots)))
	out := b.slots[i]
	b.slots[i] = b.slots[last]
	b.slots[last] = Item[T]{}
	b.slots = b.slots[:last]
	b.drawn++
	return out
}

func (b *shuffled[T]) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, `{"drawn":`...)
	out = strconv.AppendInt(out, b.drawn, 10)
	out, err := b.appendTo(append(out, ','))
	if err != nil {
		return dst, err
	}
	return out, nil
}
