package source

import (
	"math"
	"sync"
	"sync/atomic"
)

// over is added to the count of uses when there are to be no others.
const over = math.MinInt64

// uses counts the uses under way of something that is released once it is closed and the
// last of them has ended. Nobody waits for anybody.
type uses struct {
	count   atomic.Int64
	closed  atomic.Bool
	once    sync.Once
	release func() error // set before the first use
}

// begin begins a use, which ends with end. It is false when all is closed.
func (u *uses) begin() bool {
	if u.count.Add(1) > 0 {
		return true
	}
	u.end()
	return false
}

// end ends a use.
func (u *uses) end() {
	if u.count.Add(-1) == over {
		_ = u.finish() // of a file that was only read
	}
}

// close lets no other use begin. The error is that of release, if nothing is in use any
// more.
func (u *uses) close() error {
	if u.closed.Swap(true) || u.count.Add(over) != over {
		return nil
	}
	return u.finish()
}

// finish releases, once: a begin that came too late also finds that it was the last.
func (u *uses) finish() (err error) {
	u.once.Do(func() { err = u.release() })
	return err
}
