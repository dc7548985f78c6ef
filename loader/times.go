package loader

import (
	"sync"
	"time"
)

// Times says when a batch that is delivered was made. They are instants, of which each
// consumer works out who waited for whom.
type Times struct {
	// Asked is when the Run asked its Memory for the batch's slot.
	Asked time.Time
	// Opened is when the Run got the slot: no sample of the batch was read before.
	Opened time.Time
	// Filled is when the last of its rows was written.
	Filled time.Time
	// Overtaken is when the first of the batches behind it was filled, if one was before
	// this batch. Else it is the zero Time.
	Overtaken time.Time
}

// Held is how long this batch held up others: at least one of those behind it was filled
// already, and was not delivered because batches are delivered in order. The times of
// neighbours may overlap; Stats.WaitOrder counts each moment once.
func (t Times) Held() time.Duration {
	if t.Overtaken.IsZero() {
		return 0
	}
	return t.Filled.Sub(t.Overtaken)
}

// lineup is the batches that are open, in the order of delivery. It finds out which of
// them are overtaken.
type lineup struct {
	mu   sync.Mutex
	last *batch
}

// enter adds b behind the others.
func (l *lineup) enter(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.ahead, b.behind = l.last, nil
	if l.last != nil {
		l.last.behind = b
	}
	l.last = b
}

// leave notes that b is filled.
func (l *lineup) leave(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Read under the lock, so that no batch is overtaken after it is filled.
	now := time.Now()
	times := &b.filled.Times
	times.Filled = now
	if !times.Overtaken.Before(now) { // at the same instant, which is not before it
		times.Overtaken = time.Time{}
	}
	if !b.dropped {
		// Whoever overtook a batch has overtaken all those before it too.
		for a := b.ahead; a != nil && a.filled.Times.Overtaken.IsZero(); a = a.ahead {
			a.filled.Times.Overtaken = now
		}
	}
	if b.ahead != nil {
		b.ahead.behind = b.behind
	}
	if b.behind != nil {
		b.behind.ahead = b.ahead
	} else {
		l.last = b.ahead
	}
	b.ahead, b.behind = nil, nil
}
