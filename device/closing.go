package device

import (
	"sync"
	"sync/atomic"
)

// A closing is what ends a thing once, however often and from however many goroutines
// its Close is called. The zero value is a thing in use.
type closing struct {
	closed atomic.Bool // Close has begun, and hasn't failed: the driver may have given the handle to another

	mu       sync.Mutex
	underWay *attempt // nil if no Close runs
}

// An attempt is one Close that runs. err may be read once done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

// close ends the thing by free, unless that was done before: then it does nothing. A
// call during another waits for it and returns its error. If free fails the thing is
// in use again, and the next call tries again.
func (c *closing) close(free func() error) error {
	c.mu.Lock()
	if a := c.underWay; a != nil {
		c.mu.Unlock()
		<-a.done
		return a.err
	}
	if c.closed.Load() {
		c.mu.Unlock()
		return nil
	}
	a := &attempt{done: make(chan struct{})}
	c.underWay = a
	c.closed.Store(true)
	c.mu.Unlock()

	a.err = free()

	c.mu.Lock()
	c.closed.Store(a.err == nil)
	c.underWay = nil
	c.mu.Unlock()
	close(a.done)
	return a.err
}
