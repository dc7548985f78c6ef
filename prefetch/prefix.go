package prefetch

import "github.com/leat-go/leat/loader"

// prefix finds how far all results are delivered where some come out of order.
type prefix struct {
	next  int64
	ahead map[int64]loader.Cursor // behind each of those that are
}

// add notes a result, and returns the cursor behind the last of all that are
// delivered without a gap, if that has moved.
func (f *prefix) add(number int64, after loader.Cursor) (moved loader.Cursor, ok bool) {
	if number != f.next {
		if f.ahead == nil {
			f.ahead = make(map[int64]loader.Cursor)
		}
		f.ahead[number] = after
		return moved, false
	}
	for ok = true; ok; after, ok = f.ahead[f.next] {
		delete(f.ahead, f.next)
		moved = after
		f.next++
	}
	return moved, true
}
