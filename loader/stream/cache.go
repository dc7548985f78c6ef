package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/leat-go/leat/loader"
)

// Cache keeps the values of s in memory, up to a number of bytes in all, by what size says of
// each; then the others are read from s each time, and up to 64 in front of them. In all passes it gives the same values: s is
// read as the zero Pass, with seed 0, so what is to be random belongs behind the Cache. A
// value is given again and again, so whoever gets it must not change it.
//
// A value that is held is not read again, in later passes and by other readers of this Stream,
// also if the reader that has read it was closed in the middle; unless s has no marks. Records that fail are
// remembered with their errors, unless these are temporary. What is held is not part of a mark:
// in another process s is read from the place on.
func Cache[T any](s Stream[T], bytes int64, size func(value T) int) Stream[T] {
	c := &cache[T]{s: s, bytes: bytes, size: size, shelves: make([]shelf[T], max(0, s.shards))}
	return then(s, c.open, check(bytes >= 0, "Cache", "bytes", bytes, "0 or more"), needs(size == nil, "Cache", "size")).as("Cache")
}

type cache[T any] struct {
	s       Stream[T]
	bytes   int64
	size    func(T) int
	used    atomic.Int64
	shelves []shelf[T] // of the shards
}

// shelf is what is held of a shard: its first items.
type shelf[T any] struct {
	mu     sync.Mutex
	items  []shelved[T]
	last   []error // the failures behind the last item, if whole
	whole  bool
	places []place // of s, in order
	lost   error   // why there is no place where one was due
}

// shelved is an item, and the failures in front of it.
type shelved[T any] struct {
	item   Item[T]
	failed []error
}

func (c *cache[T]) open(ctx context.Context, _ loader.Pass, shard int, mark []byte) (Reader[T], error) {
	r := &cached[T]{of: c, shelf: &c.shelves[shard], open: func(mark []byte) (Reader[T], error) {
		return c.s.open(ctx, loader.Pass{}, shard, mark)
	}}
	if mark != nil {
		var m cacheMark
		at, err := m.parse("Cache", mark)
		if err != nil {
			return nil, err
		}
		r.n, r.failed, r.base = m.N, int(m.Failed), place{items: m.From, mark: at}
	}
	if r.shelf.holds(r.n, r.failed) {
		return r, nil
	}
	return r, r.begin(ctx)
}

// cached gives what is held, and when it comes to its end reads s from there on.
type cached[T any] struct {
	of      *cache[T]
	shelf   *shelf[T]
	open    func(mark []byte) (Reader[T], error)
	up      Reader[T] // nil as long as what is held is given
	n       int64     // items given
	failed  int       // failures given behind them
	footing           // of up
	base    place     // one of s that is known apart from the shelf's
	pending []error   // failures that s has given since the last item
	spoiled bool      // whether items are not to be held any more, since s could give others later
	broken  error     // why s could not be opened
}

// holds reports whether the shelf has item n, or knows that there is none, and has so many
// failures in front of it.
func (s *shelf[T]) holds(n int64, failed int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < int64(len(s.items)) {
		return failed <= len(s.items[n].failed)
	}
	return s.whole && n == int64(len(s.items)) && failed <= len(s.last)
}

// before is the last place up to item n: of the shelf, or p.
func (s *shelf[T]) before(n int64, p place) place {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.places) - 1; i >= 0; i-- {
		if at := s.places[i]; at.items <= n {
			if at.items > p.items {
				return at
			}
			break
		}
	}
	return p
}

// begin opens s behind the n items.
func (r *cached[T]) begin(ctx context.Context) error {
	from := r.shelf.before(r.n, r.base)
	up, err := r.open(from.mark)
	if err != nil {
		return err
	}
	err = orClose(up, func() error {
		if from.mark == nil {
			if err := noMarks(up); err != nil {
				r.shelf.lose(err)
			}
		}
		if err := passOver(ctx, "Cache", up, r.n-from.items); err != nil || r.failed == 0 {
			return err
		}
		r.spoiled = true // what comes is not all that is behind the item before
		return passFailed(ctx, "Cache", up, int64(r.failed))
	})
	if err == nil {
		r.up, r.base = up, from
	}
	return err
}

func (s *shelf[T]) lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = err
}

func (r *cached[T]) Next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if r.up == nil && r.broken == nil {
		if ok, err, held := r.held(item); held {
			return ok, err
		}
		r.broken = r.begin(ctx)
	}
	if r.broken != nil {
		return false, r.broken
	}
	if r.n-r.base.items >= placeEvery && r.failed == 0 {
		r.keepPlace()
	}
	switch ok, err = r.up.Next(ctx, item); {
	case err == loader.Flush:
	case err != nil:
		if r.moved(r.failed > 0, r.up) {
			r.failed++
		}
		r.pending = append(r.pending, err)
		r.spoiled = r.spoiled || temporary(err) || ctx.Err() != nil
	default:
		r.hold(item, ok)
	}
	return ok && err == nil, err
}

// held is what the shelf has to give, false if nothing.
func (r *cached[T]) held(item *Item[T]) (ok bool, err error, held bool) {
	r.shelf.mu.Lock()
	defer r.shelf.mu.Unlock()
	failed := r.shelf.last
	if ok = r.n < int64(len(r.shelf.items)); ok {
		*item, failed = r.shelf.items[r.n].item, r.shelf.items[r.n].failed
	} else if !r.shelf.whole {
		return false, nil, false
	}
	if r.failed < len(failed) {
		r.failed++
		return false, failed[r.failed-1], true
	}
	if ok {
		r.n++
		r.failed = 0
	}
	return ok, nil, true
}

// hold puts what s has given onto the shelf, if that ends there: an item, or the end.
func (r *cached[T]) hold(item *Item[T], ok bool) {
	size, err := int64(0), error(nil)
	if ok {
		size, err = r.measure(item.Value)
	}
	r.spoiled = r.spoiled || err != nil
	r.shelf.mu.Lock()
	defer r.shelf.mu.Unlock()
	fits := !r.spoiled && r.n == int64(len(r.shelf.items)) && !r.shelf.whole
	switch {
	case fits && !ok:
		r.shelf.last, r.shelf.whole = r.pending, true
	case fits && r.of.reserve(size):
		r.shelf.items = append(r.shelf.items, shelved[T]{item: *item, failed: r.pending})
	}
	r.pending = nil
	if ok {
		r.n++
		r.failed = 0
	}
}

func (r *cached[T]) measure(value T) (size int64, err error) {
	defer recovered(&err)
	return max(0, int64(r.of.size(value))), nil
}

// reserve takes bytes of the limit, if there are so many.
func (c *cache[T]) reserve(bytes int64) bool {
	for {
		used := c.used.Load()
		if bytes > c.bytes-used {
			return false
		}
		if c.used.CompareAndSwap(used, used+bytes) {
			return true
		}
	}
}

// keepPlace keeps the place where s stands, and gives it to the shelf if that ends here.
func (r *cached[T]) keepPlace() {
	mark, err := r.up.AppendMark(nil)
	r.shelf.mu.Lock()
	defer r.shelf.mu.Unlock()
	if r.shelf.lost = err; err != nil {
		return
	}
	r.base = place{items: r.n, mark: mark}
	if last := len(r.shelf.places) - 1; r.n == int64(len(r.shelf.items)) && (last < 0 || r.shelf.places[last].items < r.n) {
		r.shelf.places = append(r.shelf.places, r.base)
	}
}

func (r *cached[T]) AppendMark(dst []byte) ([]byte, error) {
	r.shelf.mu.Lock()
	lost := r.shelf.lost
	r.shelf.mu.Unlock()
	if lost != nil {
		return dst, lost
	}
	if err := r.footing.lost(); err != nil && r.failed > 0 {
		return dst, err
	}
	return appendCacheMark(dst, r.n, int64(r.failed), r.shelf.before(r.n, r.base)), nil
}

// Close keeps the place where s stands, so that another reader can go on.
func (r *cached[T]) Close() error {
	if r.up == nil {
		return nil
	}
	if r.failed == 0 {
		r.keepPlace()
	}
	return r.up.Close()
}
