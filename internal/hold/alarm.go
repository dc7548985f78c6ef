package hold

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrAlarm is the error of a wait that an Alarm has ended.
var ErrAlarm = errors.New("the wait was called off")

// An Alarm is the context of one goroutine's waits, which another one ends. One serves for
// wait after wait, so that waiting allocates nothing, as a context of package context would.
// NewAlarm makes one.
type Alarm struct {
	context.Context
	armed, done atomic.Bool
	wake        chan struct{}
}

// NewAlarm makes an Alarm for waits that have not begun.
func NewAlarm() Alarm {
	return Alarm{Context: context.Background(), wake: make(chan struct{}, 1)}
}

// Arm begins a wait. The goroutine that waits calls it and Disarm.
func (a *Alarm) Arm() {
	a.done.Store(false)
	select {
	case <-a.wake: // of a wait that had ended by itself
	default:
	}
	a.armed.Store(true)
}

// Disarm ends a wait that has ended by itself.
func (a *Alarm) Disarm() { a.armed.Store(false) }

// End ends the wait, if there is one. It is for the other goroutine.
func (a *Alarm) End() {
	if a.armed.CompareAndSwap(true, false) {
		a.done.Store(true)
		select {
		case a.wake <- struct{}{}:
		default: // it is full, of a call of End that was slow
		}
	}
}

// Done implements context.Context for the one goroutine that waits.
func (a *Alarm) Done() <-chan struct{} { return a.wake }

// Err implements context.Context.
func (a *Alarm) Err() error {
	if a.done.Load() {
		return ErrAlarm
	}
	return nil
}
