package serve

import (
	"runtime/debug"
	"sync"
	"time"
)

// crew is goroutines on which user code runs, so that one that is ended by runtime.Goexit
// is none that anything else depends on. A goroutine that has nothing to do is kept for the
// next task, up to some; close ends those.
type crew struct {
	mu     sync.Mutex
	idle   []*hand
	kept   int // at most so many are
	busy   int
	closed bool
	rest   chan struct{} // closed when closed and nobody is busy
}

// task is something to do, all of whose ends are told by itself.
type task interface{ run() }

type hand struct{ tasks chan task }

func newCrew(kept int) *crew { return &crew{kept: kept, rest: make(chan struct{})} }

// start has t run, and waits for nobody.
func (c *crew) start(t task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy++
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		h.tasks <- t // it has room: only who takes h from idle sends
		return
	}
	h := &hand{tasks: make(chan task, 1)}
	h.tasks <- t
	go c.work(h) // ends by close, by a task, or when there are enough
}

func (c *crew) work(h *hand) {
	defer func() {
		if h != nil { // a task has ended this goroutine
			c.done(nil)
		}
	}()
	for t := range h.tasks {
		t.run()
		if !c.done(h) {
			break
		}
	}
	h = nil
}

// done is the end of a task. It reports whether the hand is to wait for another.
func (c *crew) done(h *hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.closed && c.busy == 0 {
		close(c.rest)
	}
	if h == nil || c.closed || len(c.idle) >= c.kept {
		return false
	}
	c.idle = append(c.idle, h)
	return true
}

// close waits for what is under way, no longer than grace. It is called once, behind all that
// starts tasks.
func (c *crew) close(grace time.Duration) error {
	c.mu.Lock()
	c.closed = true
	for _, h := range c.idle {
		close(h.tasks)
	}
	c.idle = nil
	if c.busy == 0 {
		close(c.rest)
	}
	c.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.rest:
		return nil
	case <-timer.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == 0 {
		return nil
	}
	return &StuckError{Calls: c.busy, Grace: grace}
}

// call is a task that somebody waits for, again and again.
type call struct {
	code func() error
	err  error
	done chan struct{} // has room for one
}

func newCall(code func() error) *call { return &call{code: code, done: make(chan struct{}, 1)} }

// do runs the code on c, and returns its error, or that which a panic or runtime.Goexit is.
// One goroutine calls it at a time.
func (k *call) do(c *crew) error {
	c.start(k)
	<-k.done
	return k.err
}

func (k *call) run() {
	returned := false
	defer func() {
		if !returned {
			k.err = caught(recover(), debug.Stack())
		}
		k.done <- struct{}{}
	}()
	k.err = k.code()
	returned = true
}

// calls is how many tasks are under way.
func (c *crew) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy
}
