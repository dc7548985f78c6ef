package loader

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// crew is the workers of a Run. They are numbered in the order in which they are made; one
// that has retired is taken again before another is made.
type crew struct {
	workers []atomic.Pointer[worker] // nil from made on
	made    atomic.Int32

	mu   sync.Mutex
	idle []*worker // those that have no goroutine
}

// make makes the first workers. The rest are made when they are taken, since most never are.
func (c *crew) make(r *Run, workers int) {
	for range workers {
		c.idle = append(c.idle, c.another(r))
	}
	slices.Reverse(c.idle) // the first are taken first
}

// another makes one more worker.
func (c *crew) another(r *Run) *worker {
	number := int(c.made.Load())
	w := newWorker(r, number)
	c.workers[number].Store(w)
	c.made.Store(int32(number + 1))
	return w
}

// take takes a worker to begin, of no more than there may be.
func (c *crew) take(r *Run) *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return c.another(r)
	}
	w := c.idle[last]
	c.idle = c.idle[:last]
	return w
}

// free takes back a worker, which its goroutine no longer uses.
func (c *crew) free(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, w)
}

// all yields the workers that were made, with their numbers.
func (c *crew) all() iter.Seq2[int, *worker] {
	return func(yield func(int, *worker) bool) {
		for i := range c.made.Load() {
			if !yield(int(i), c.workers[i].Load()) {
				return
			}
		}
	}
}
