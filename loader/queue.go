package loader

import (
	"math/bits"
	"sync/atomic"
)

// entry is what a shard's goroutine has for the merger.
type entry struct {
	kind    kind
	skipped int32   // samples left out between the entry before and this one
	encoder Encoder // of a sample
	pass    int
	read    int64 // records of the pass up to here, from where the reader began
	err     error // a *failure, or why the last of those was left out
}

// failure is what goes wrong with a shard, and at what.
type failure struct {
	error
	stage  string
	origin Origin
}

// Unwrap is for a *SkipError around it.
func (f *failure) Unwrap() error { return f.error }

type kind uint8

const (
	aSample kind = iota
	aFlush
	aFailure // nothing comes behind it
	anEnd    // of the shard, for good
)

// queue is what one shard has read ahead, in a ring whose size is a power of two. One goroutine puts, another takes, and neither
// takes a lock or wakes the other unless that one waits.
type queue struct {
	entries []entry

	_    [128]byte
	tail atomic.Int64 // entries put so far; the putter's
	seen int64        // of head, by the putter
	_    [128]byte
	head atomic.Int64 // entries taken so far, published now and then; the taker's
	took int64        // entries taken so far
	// known and given are what the taker knows of tail and has told of head: it looks at
	// what the putter writes as rarely as it can.
	known, given int64
	_            [128]byte

	// Set by who is about to wait, before its last look.
	putterWaits, takerWaits atomic.Bool
	room, more              chan struct{}
}

// init makes room for at most so many entries, 1 or more, and at least for half of them.
func (q *queue) init(most int) {
	q.entries = make([]entry, 1<<(bits.Len(uint(most))-1))
	q.room, q.more = make(chan struct{}, 1), make(chan struct{}, 1)
}

// next lends the place of the next entry, which is zero but for numbers of an older one. It is
// nil if there is no room. A whole entry as an argument would be copied three times.
func (q *queue) next() *entry {
	tail := q.tail.Load()
	size := int64(len(q.entries))
	if tail-q.seen == size {
		if q.seen = q.head.Load(); tail-q.seen == size {
			return nil
		}
	}
	return &q.entries[tail&(size-1)]
}

// put appends the entry that was written to the place that next has lent.
func (q *queue) put() {
	q.tail.Store(q.tail.Load() + 1)
	if q.takerWaits.Load() && q.takerWaits.CompareAndSwap(true, false) {
		wake(q.more)
	}
}

// awaitRoom announces that the putter waits on q.room, unless there is room by now.
func (q *queue) awaitRoom() (waits bool) {
	q.putterWaits.Store(true)
	if q.tail.Load()-q.head.Load() == int64(len(q.entries)) {
		return true
	}
	q.putterWaits.Store(false)
	return false
}

// take moves the first entry to e, if there is one. A putter that waits is woken when half of
// the queue is free, so that it then has something to do.
func (q *queue) take(e *entry) bool {
	if q.took == q.known {
		if q.known = q.tail.Load(); q.took == q.known {
			return false
		}
	}
	size := int64(len(q.entries))
	at := &q.entries[q.took&(size-1)]
	*e = *at
	at.encoder, at.err = nil, nil // what they refer to may be garbage from now on
	if q.took++; q.took-q.given >= size/2 {
		q.publish()
	}
	return true
}

// publish gives what was taken free.
func (q *queue) publish() {
	q.given = q.took
	q.head.Store(q.took)
	if q.putterWaits.Load() && q.putterWaits.CompareAndSwap(true, false) {
		wake(q.room)
	}
}

// awaitMore announces that the taker waits on q.more, unless there is more by now.
func (q *queue) awaitMore() (waits bool) {
	q.publish()
	q.takerWaits.Store(true)
	if q.took == q.tail.Load() {
		return true
	}
	q.takerWaits.Store(false)
	return false
}
