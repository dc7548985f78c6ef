package hold

import "sync/atomic"

// A Gate is a lock. NewGate makes one.
type Gate struct {
	held   atomic.Bool
	opened chan struct{} // holds a token from an Unlock until somebody tries again
}

// NewGate makes a Gate that nobody holds.
func NewGate() Gate { return Gate{opened: make(chan struct{}, 1)} }

// TryLock takes the gate if nobody holds it.
func (g *Gate) TryLock() bool { return g.held.CompareAndSwap(false, true) }

// Lock waits for the gate and takes it.
func (g *Gate) Lock() {
	for !g.TryLock() {
		<-g.opened
	}
}

// Opened is readable when the gate may have been unlocked. Who reads from it tries at once
// to take the gate, because others may wait for the same token.
func (g *Gate) Opened() <-chan struct{} { return g.opened }

// Unlock gives the gate back.
func (g *Gate) Unlock() {
	g.held.Store(false)
	select {
	case g.opened <- struct{}{}:
	default:
	}
}
