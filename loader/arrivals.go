package loader

import "sync/atomic"

// arrivals is the batches that are filled and not delivered, in the order in which they
// were filled. Workers add to it without a lock and without a look at another batch; only
// Next reads it.
type arrivals struct {
	_       [128]byte
	newest  atomic.Pointer[batch] // that Next has not seen; each links to the one before
	awaited atomic.Int64          // one more than the number that Next waits for, else 0
	_       [128]byte
	bell    chan struct{} // has Next look again

	// Those that Next has seen; the Run's consumer guards them.
	first, last *batch
}

// add adds a batch that was just filled.
func (a *arrivals) add(b *batch) {
	for {
		before := a.newest.Load()
		b.before = before
		number := b.number // b may be delivered once it is in
		if !a.newest.CompareAndSwap(before, b) {
			continue
		}
		if a.awaited.Load() == number+1 {
			select {
			case a.bell <- struct{}{}:
			default:
			}
		}
		return
	}
}

// have reports whether b is filled.
func (a *arrivals) have(b *batch) bool {
	if !b.arrived {
		a.collect()
	}
	return b.arrived
}

// await announces that Next waits for b, if it is not filled. It reports whether it is.
func (a *arrivals) await(b *batch) bool {
	a.awaited.Store(b.number + 1) // before the look, which add follows with one at awaited
	return a.have(b)
}

// collect takes over those that are new.
func (a *arrivals) collect() {
	var oldest *batch
	if a.newest.Load() == nil {
		return
	}
	for b := a.newest.Swap(nil); b != nil; {
		b, b.before, oldest = b.before, oldest, b
	}
	for b := oldest; b != nil; b = b.before {
		b.arrived = true
		if b.dropped.Load() {
			continue // it never has its turn, and overtakes none
		}
		b.ahead, b.behind = a.last, nil
		if a.last != nil {
			a.last.behind = b
		} else {
			a.first = b
		}
		a.last = b
	}
}

// overtaken returns the first that was filled before b, whose turn it is, nil if b was.
func (a *arrivals) overtaken(b *batch) *batch {
	if a.first == b || b.dropped.Load() {
		return nil
	}
	return a.first
}

// remove takes b out, which is delivered.
func (a *arrivals) remove(b *batch) {
	if b.dropped.Load() {
		return
	}
	if b.ahead != nil {
		b.ahead.behind = b.behind
	} else {
		a.first = b.behind
	}
	if b.behind != nil {
		b.behind.ahead = b.ahead
	} else {
		a.last = b.ahead
	}
	b.ahead, b.behind = nil, nil
}
