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
// yields its processor finds out: if it gets one again at once, there is room. So only
// some workers, the base, always read. The others are the reserve: one that had to wait
// for a processor stands aside, and is called back when there is room again.
const (
	// crowded is how long a worker of the reserve waits for a processor at most: no
	// longer does the consumer, then, apart from the end of a sample.
	crowded = 2 * claimTime
	// A call comes after a pause, which grows as long as who is called finds no room.
	shortPause, longPause = 5 * time.Millisecond, 160 * time.Millisecond
)

// defaultWorkers is the number of workers where none is stated, and how many of them
// always read: two processors are left to the consumer and to the goroutines that wait
// for the device.
func defaultWorkers() (workers, base int) {
	processors := runtime.GOMAXPROCS(0)
	return max(32, 2*processors), max(1, processors-2)
}

// reserve is the workers that stand aside.
type reserve struct {
	aside atomic.Int32 // how many wait

	mu    sync.Mutex
	room  sync.Cond
	ended bool
	next  time.Time     // no call before
	pause time.Duration // from a call to the next
	size  int           // how many the next call is for
	calm  bool          // nobody stood aside since the last call
}

func (r *reserve) init() {
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
	case now.Sub(began) <= crowded:
		if r.aside.Load() > 0 && w.run.lineup.any() {
			r.call(now)
		}
	case w.reserved:
		r.standAside(now)
	}
}

// standAside waits to be called.
func (r *reserve) standAside(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	r.calm, r.next = false, now.Add(r.pause)
	r.aside.Add(1)
	r.room.Wait()
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
