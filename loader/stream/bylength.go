package stream

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/loader/internal/mix"
	"github.com/leat-go/leat/loader/internal/permute"
)

// ByLength gives values of similar length next to each other, so that a batch of them needs
// little padding: it reads run·runs values of a shard, sorts them by length, cuts them into
// runs, and gives these in a random order. The order of the runs is the same in all shards,
// so a batch that takes run values of each has similar ones of all: run is the batch size over
// all ranks, divided by the number of shards. A panic of length is the failure of its value.
//
// A mark holds none of the values: those of the runs at hand are read again.
func ByLength[T any](s Stream[T], run, runs int, length func(value T) int) Stream[T] {
	draws := s.draws
	out := then(s, func(ctx context.Context, pass loader.Pass, shard int, mark []byte) (Reader[T], error) {
		r := &byLength[T]{run: run, size: int64(run) * int64(runs), length: length, key: drawKey(pass, 0, draws)}
		open := func(mark []byte) (Reader[T], error) { return s.open(ctx, pass, shard, mark) }
		return r, r.start(ctx, open, mark)
	},
		check(run >= 1 && run <= math.MaxInt32, "ByLength", "run", run, "1 to 2³¹-1"),
		check(runs >= 1 && runs <= math.MaxInt32, "ByLength", "runs", runs, "1 to 2³¹-1"),
		needs(length == nil, "ByLength", "length")).as("ByLength", uint64(run), uint64(runs))
	out.draws++
	return out
}

// byLength gives windows of size items of a shard, one after the other. What is in a window,
// and in which order, follows from its number.
type byLength[T any] struct {
	*trail[T]
	run    int
	size   int64
	length func(T) int
	key    uint64
	window int64
	items  []measured[T] // of the window
	order  permute.Permutation
	full   bool // whether all items have been read: they are sorted
	given  int  // items, of which the last were
	within int  // in the run at
	place  int  // in the order
}

type measured[T any] struct {
	item   Item[T]
	length int
}

// byLengthMark is its mark. The place is the window's beginning.
type byLengthMark struct {
	Given int `json:"given"`
	trailMark
}

func (r *byLength[T]) start(ctx context.Context, open func([]byte) (Reader[T], error), mark []byte) error {
	if mark == nil {
		up, err := open(nil)
		if err == nil {
			r.trail = newTrail(up, 0, nil, math.MaxInt64)
		}
		return err
	}
	var m byLengthMark
	if err := parse("ByLength", mark, &m); err != nil {
		return err
	}
	r.window = m.From / r.size
	err := errors.Join(
		outside("ByLength", "from, in windows,", r.window, 0, math.MaxInt64/r.size-1),
		outside("ByLength", "from, in its window,", m.From%r.size, 0, 0),
		outside("ByLength", "read", m.Read, 0, r.size))
	if err != nil {
		return err
	}
	t, err := openTrail(ctx, "ByLength", open, m.trailMark, math.MaxInt64, func(_ int64, item Item[T]) error {
		_ = r.add(item) // its failure was told when it was first read
		return nil
	})
	if err != nil {
		return err
	}
	r.trail = t
	if err := r.restore(m.Given); err != nil {
		return closing(t, &MarkError{Operator: "ByLength", Err: err})
	}
	return nil
}

func (r *byLength[T]) restore(given int) error {
	if given < 0 || given > len(r.items) {
		return errors.New("it has given more items than there are")
	}
	if given > 0 || r.trail.items-r.window*r.size == r.size {
		r.sort()
	}
	for range given {
		r.give()
	}
	return nil
}

// add puts an item into the window.
func (r *byLength[T]) add(item Item[T]) (err error) {
	defer recovered(&err)
	r.items = append(r.items, measured[T]{item: item, length: r.length(item.Value)})
	return nil
}

// sort ends the reading of the window.
func (r *byLength[T]) sort() {
	slices.SortStableFunc(r.items, func(a, b measured[T]) int { return cmp.Compare(a.length, b.length) })
	runs := (len(r.items) + r.run - 1) / r.run
	r.order = permute.New(mix.Hash(r.key, uint64(r.window)), uint64(runs))
	r.full = true
}

func (r *byLength[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	for {
		if r.full && r.given == len(r.items) {
			if r.trail.items < (r.window+1)*r.size { // it was the last
				return false, nil
			}
			r.turn()
		}
		if r.full {
			*item = r.give()
			return true, nil
		}
		if err := r.fill(ctx, item); err != nil {
			return false, err
		}
	}
}

// fill reads the window, by way of item.
func (r *byLength[T]) fill(ctx context.Context, item *Item[T]) error {
	for r.trail.items < (r.window+1)*r.size {
		ok, err := r.next(ctx, item)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := r.add(*item); err != nil {
			return located(err, item.Origin)
		}
	}
	r.sort()
	return nil
}

// give is the next item of the window: the runs in their order, of which the longest values'
// may be shorter than the others.
func (r *byLength[T]) give() Item[T] {
	begin := int(r.order.At(uint64(r.place))) * r.run
	item := r.items[begin+r.within].item
	r.given++
	if r.within++; r.within == r.run || begin+r.within == len(r.items) {
		r.place, r.within = r.place+1, 0
	}
	return item
}

// turn begins the next window.
func (r *byLength[T]) turn() {
	clear(r.items)
	r.items, r.full = r.items[:0], false
	r.given, r.place, r.within = 0, 0, 0
	r.window++
	r.keepPlace()
	r.forget(r.trail.items)
}

func (r *byLength[T]) AppendMark(dst []byte) ([]byte, error) {
	out := append(dst, `{"given":`...)
	out = strconv.AppendInt(out, int64(r.given), 10)
	out, err := r.appendTo(append(out, ','))
	if err != nil {
		return dst, err
	}
	return out, nil
}
