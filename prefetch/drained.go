package prefetch

import (
	"context"
	"errors"
	"sync/atomic"
)

// errDrained ends the uploader's wait for another batch.
var errDrained = errors.New("prefetch: nothing is left to deliver")

// drained is the context of the uploader's wait for another batch: it is done when
// the reader has taken the last item. One serves for every wait of a run, so that
// waiting allocates nothing, as a context of package context would.
type drained struct {
	context.Context
	armed, done atomic.Bool
	wake        chan struct{}
}

func newDrained() drained {
	return drained{Context: context.Background(), wake: make(chan struct{}, 1)}
}

// arm begins a wait. The uploader calls it and disarm.
func (d *drained) arm() {
	d.done.Store(false)
	select {
	case <-d.wake: // of a wait that had ended by itself
	default:
	}
	d.armed.Store(true)
}

func (d *drained) disarm() { d.armed.Store(false) }

// end ends the wait, if there is one. The reader calls it.
func (d *drained) end() {
	if d.armed.CompareAndSwap(true, false) {
		d.done.Store(true)
		select {
		case d.wake <- struct{}{}:
		default: // it is full, of a call of end that was slow
		}
	}
}

// Done implements context.Context for the one goroutine that waits.
func (d *drained) Done() <-chan struct{} { return d.wake }

// Err implements context.Context.
func (d *drained) Err() error {
	if d.done.Load() {
		return errDrained
	}
	return nil
}
