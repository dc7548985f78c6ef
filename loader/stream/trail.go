package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/leat-go/leat/loader"
)

// trail reads a stream for an operator that holds items back, and keeps the way back to
// them: marks of places before them. So the operator's own mark needs none of the items, only
// how many to read again.
//
// Items are counted. A record that failed is no item, but lies between two, or between the
// last and the end: it is passed over again, whatever becomes of it then. A failure is taken for
// a record's if the reader's marks have moved since the failure before.
type trail[T any] struct {
	up     Reader[T]
	items  int64 // how many have been read since the shard's beginning
	failed int64 // how many records have failed behind the last item
	footing
	ended  bool
	every  int64   // items between two places
	places []place // the oldest first, at least one
	gaps   []gap   // behind the oldest place, in order
	lost   error   // why there is no place where one was due
}

// place is one to go on from.
type place struct {
	items int64 // before it
	mark  []byte
}

// gap is a number of records that failed, in front of an item or of the end.
type gap struct{ item, n int64 }

// trailMark is the part of an operator's mark that appendTo makes.
type trailMark struct {
	At     raw        `json:"at"`
	From   int64      `json:"from"` // items before At
	Read   int64      `json:"read"` // items behind it
	Failed [][2]int64 `json:"failed,omitempty"`
}

// newTrail is for a reader that was opened at mark, before which there are items. The memory
// of mark may be others' too; that of places is written to.
func newTrail[T any](up Reader[T], items int64, mark []byte, every int64) *trail[T] {
	t := &trail[T]{up: up, items: items, every: max(1, every), places: []place{{items: items, mark: slices.Clone(mark)}}}
	if mark == nil {
		t.lost = noMarks(up)
	}
	return t
}

// noMarks is an error if up, which is at its beginning, has no marks at all.
func noMarks[T any](up Reader[T]) (err error) {
	defer recovered(&err)
	_, err = up.AppendMark(nil)
	return err
}

// next is up's Next, counted.
func (t *trail[T]) next(ctx context.Context, item *Item[T]) (ok bool, err error) {
	if t.ended {
		return false, nil
	}
	if t.items-t.places[len(t.places)-1].items >= t.every {
		t.keepPlace()
	}
	ok, err = t.up.Next(ctx, item)
	switch {
	case err == loader.Flush:
	case err != nil:
		if t.moved(t.failed > 0, t.up) {
			t.failed++
		}
	case ok:
		t.passed(t.failed)
		t.items++
	default:
		t.passed(t.failed)
		t.ended = true
	}
	return ok && err == nil, err
}

// passed counts records that failed behind the last item.
func (t *trail[T]) passed(n int64) {
	if t.failed = 0; n == 0 {
		return
	}
	if g := len(t.gaps); g > 0 && t.gaps[g-1].item == t.items { // which was passed over again
		t.gaps[g-1].n += n
		return
	}
	t.gaps = append(t.gaps, gap{item: t.items, n: n})
}

// keepPlace keeps the place where up stands, if it is one behind an item. The memory is that
// of forgotten ones.
func (t *trail[T]) keepPlace() {
	g := len(t.gaps)
	if t.failed > 0 || g > 0 && t.gaps[g-1].item == t.items {
		return
	}
	n := len(t.places)
	if cap(t.places) > n {
		t.places = t.places[:n+1]
	} else {
		t.places = append(t.places, place{})
	}
	mark, err := t.up.AppendMark(t.places[n].mark[:0])
	if t.lost = err; err != nil {
		t.places = t.places[:n]
		return
	}
	t.places[n] = place{items: t.items, mark: mark}
}

// forget says that no item before number item is held any more.
func (t *trail[T]) forget(item int64) {
	n := 0
	for n+1 < len(t.places) && t.places[n+1].items <= item {
		n++
	}
	if n == 0 {
		return
	}
	rotate(t.places, n)
	t.places = t.places[:len(t.places)-n]
	g := 0
	for g < len(t.gaps) && t.gaps[g].item < t.places[0].items {
		g++
	}
	t.gaps = append(t.gaps[:0], t.gaps[g:]...)
}

// rotate moves the first n places behind the others, so that their memory is used again.
func rotate(places []place, n int) {
	for range n {
		first := places[0]
		copy(places, places[1:])
		places[len(places)-1] = first
	}
}

// appendTo appends the mark of the place behind the last item, as the last keys of an
// object.
func (t *trail[T]) appendTo(dst []byte) ([]byte, error) {
	if t.lost != nil {
		return dst, t.lost
	}
	if t.failed > 0 {
		if err := t.footing.lost(); err != nil {
			return dst, err
		}
		defer t.unpass(len(t.gaps), t.failed)
		t.passed(t.failed)
	}
	p := t.places[0]
	out := append(dst, `"at":`...)
	out = appendGiven(out, p.mark)
	out = append(out, `,"from":`...)
	out = strconv.AppendInt(out, p.items, 10)
	out = append(out, `,"read":`...)
	out = strconv.AppendInt(out, t.items-p.items, 10)
	for i, g := range t.gaps {
		sep := `,[`
		if i == 0 {
			sep = `,"failed":[[`
		}
		out = append(out, sep...)
		out = strconv.AppendInt(out, g.item-p.items, 10)
		out = append(out, ',')
		out = strconv.AppendInt(out, g.n, 10)
		out = append(out, ']')
	}
	if len(t.gaps) > 0 {
		out = append(out, ']')
	}
	return append(out, '}'), nil
}

// unpass undoes passed, where there were so many gaps before.
func (t *trail[T]) unpass(gaps int, n int64) {
	t.failed = n
	if len(t.gaps) == gaps {
		t.gaps[gaps-1].n -= n
	}
	t.gaps = t.gaps[:gaps]
}

// openTrail opens s at the place of m, and reads again what m says, which is given to each with
// its number. Nothing is allocated by the numbers of m.
func openTrail[T any](ctx context.Context, operator string, open func(mark []byte) (Reader[T], error), m trailMark, every int64,
	each func(number int64, item Item[T]) error,
) (*trail[T], error) {
	at, err := m.check(operator)
	if err != nil {
		return nil, err
	}
	up, err := open(at)
	if err != nil {
		return nil, err
	}
	t := newTrail(up, m.From, at, every)
	if err := orClose(up, func() error { return t.again(ctx, operator, m, each) }); err != nil {
		return nil, err
	}
	return t, nil
}

// mostFailed is how many records may have failed in a row: a mark that says more is wrong.
const mostFailed = 1 << 20

// check returns the mark within, if the numbers are in order.
func (m trailMark) check(operator string) ([]byte, error) {
	at, err := inner(operator, m.At)
	err = errors.Join(err,
		outside(operator, "from", m.From, 0, math.MaxInt64),
		outside(operator, "read", m.Read, 0, math.MaxInt64-1-max(0, m.From)))
	last := int64(-1)
	for _, f := range m.Failed {
		err = errors.Join(err, outside(operator, "failed", f[0], last+1, m.Read), outside(operator, "failed", f[1], 1, mostFailed))
		last = f[0]
	}
	return at, err
}

// again reads what lies between m's place and its end.
func (t *trail[T]) again(ctx context.Context, operator string, m trailMark, each func(int64, Item[T]) error) error {
	var item Item[T]
	for i := range m.Read + 1 {
		if len(m.Failed) > 0 && m.Failed[0][0] == i {
			if err := t.pass(ctx, operator, m.Failed[0][1]); err != nil {
				return err
			}
			m.Failed = m.Failed[1:]
		}
		if i == m.Read {
			break
		}
		if err := t.read(ctx, operator, &item); err != nil {
			return err
		}
		if err := each(t.items-1, item); err != nil {
			return &MarkError{Operator: operator, Err: err}
		}
	}
	return nil
}

// pass passes over n records that failed when they were first read.
func (t *trail[T]) pass(ctx context.Context, operator string, n int64) error {
	if err := passFailed(ctx, operator, t.up, n); err != nil {
		return err
	}
	t.passed(n)
	return nil
}

// passFailed passes over n records that failed when they were first read, whatever becomes of
// them now.
func passFailed[T any](ctx context.Context, operator string, up Reader[T], n int64) error {
	var item Item[T]
	for range n {
		ok, err := up.Next(ctx, &item)
		for err == loader.Flush {
			ok, err = up.Next(ctx, &item)
		}
		if err == nil && !ok {
			return &MarkError{Operator: operator, Err: errOtherData}
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read is the next item, which was there when it was first read.
func (t *trail[T]) read(ctx context.Context, operator string, item *Item[T]) error {
	for {
		ok, err := t.next(ctx, item)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == loader.Flush:
		case err != nil:
			return fmt.Errorf("stream: %s: a record can't be read again: %w", operator, err)
		case !ok:
			return &MarkError{Operator: operator, Err: errOtherData}
		default:
			return nil
		}
	}
}

// Close closes up.
func (t *trail[T]) Close() error { return t.up.Close() }

// passOver reads n items again, and drops them and the failures between them.
func passOver[T any](ctx context.Context, operator string, up Reader[T], n int64) error {
	var item Item[T]
	for failures := 0; n > 0; {
		ok, err := up.Next(ctx, &item)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == loader.Flush:
		case err != nil:
			if failures++; failures == 100 || temporary(err) { // else up may be broken for ever
				return err
			}
		case !ok:
			return &MarkError{Operator: operator, Err: errOtherData}
		default:
			n--
			failures = 0
		}
	}
	return nil
}
