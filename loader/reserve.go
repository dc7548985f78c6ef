package loader

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Without a stated number of workers there are many, for reads that wait, for a disk or
// a network, and so leave the processors alone. Reads that compute would take every
// processor from the consumer. Nothing tells the two apart beforehand, but a worker that
// yields its processor finds out: if it gets one again at once, there is room. So only as
// many workers as the core budget says always read. Beyond them, one that had to wait for a
// processor stands aside, and is called back when there is room again.
const (
	// crowded is how long a worker beyond the base waits for a processor at most, and
	// mostCrowded with slow samples: no longer does the consumer, then, apart from the end
	// of a sample.
	crowded, mostCrowded = 2 * claimTime, 2 * time.Millisecond
	// A call comes after a pause, which grows as long as who is called finds no room.
	shortPause, longPause = 5 * time.Millisecond, 160 * time.Millisecond
)

// reserve is the workers that stand aside.
type reserve struct {
	base  int           // how many never do
	begun *atomic.Int32 // all of them
	aside atomic.Int32  // how many wait

	mu    sync.Mutex
	room  sync.Cond
	ended bool
	next  time.Time     // no call before
	pause time.Duration // from a call to the next
	size  int           // how many the next call is for
	calm  bool          // nobody stood aside since the last call
}

func (r *reserve) init(base int, begun *atomic.Int32) {
	r.base, r.begun = base, begun
	r.room.L = &r.mu
	r.pause, r.size = shortPause, 1
}

// yield lets other goroutines have the processor: with every P busy, one that returns
// from a blocking driver call would otherwise wait for the scheduler to preempt somebody.
// It returns when the worker is to go on.
func (r *reserve) yield(w *worker) {
	if !w.run.reserved {
		runtime.Gosched()
		return
	}
	began := time.Now()
	runtime.Gosched()
	switch now := time.Now(); {
	case now.Sub(began) <= bearable(w.ended.Sub(w.began)):
		if r.aside.Load() > 0 && w.run.lineup.any() {
			r.call(now)
		}
	default:
		r.standAside(now)
	}
}

// bearable is how long a worker whose claim took so long waits for a processor before it
// stands aside: crowded, and more where that is little beside the claim. Reads that compute
// so long make each other wait longer than that; for reads that wait it is other programs'
// doing, and no reason to read less.
func bearable(took time.Duration) time.Duration { return max(crowded, min(took/8, mostCrowded)) }

// standAside waits to be called, if enough others go on.
func (r *reserve) standAside(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || int(r.begun.Load()-r.aside.Load()) <= r.base {
		return
	}
	r.calm, r.next = false, now.Add(r.pause)
	r.aside.Add(1)
	r.room.Wait()
}

// retire takes a worker that has no rows off those that were begun, if these are too many.
// The last that is not aside stays: nobody would call the others.
func (r *reserve) retire(w *worker) bool {
	l := &w.run.lineup
	if l.begun.Load() <= l.allowed.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := l.begun.Load(); n <= l.allowed.Load() || n-r.aside.Load() <= 1 {
		return false
	}
	w.limit.end()
	w.run.crew.free(w)
	l.begun.Add(-1) // behind free: no more are taken than there may be
	return true
}

// call calls some workers back, if it is time: twice as many as the last time if these
// found room.
func (r *reserve) call(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Before(r.next) {
		return
	}
	if r.calm {
		r.size, r.pause = 2*r.size, shortPause
	} else {
		r.size, r.pause = 1, min(2*r.pause, longPause)
	}
	r.calm, r.next = true, now.Add(r.pause)
	for range min(r.size, int(r.aside.Load())) {
		r.aside.Add(-1)
		r.room.Signal()
	}
}

// end calls all back for good.
func (r *reserve) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.aside.Store(0)
	r.room.Broadcast()
}
