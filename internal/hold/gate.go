package hold

import "sync/atomic"

// A Gate is a lock. NewGate makes one.
type Gate struct {
	holder atomic.Int32  // 0 for nobody
	opened chan struct{} // holds a token from an Unlock until somebody tries again
}

// NewGate makes a Gate that nobody holds.
func NewGate() Gate { return Gate{opened: make(chan struct{}, 1)} }

// TryLock takes the gate if nobody holds it.
func (g *Gate) TryLock() bool { return g.TryLockAs(1) }

// TryLockAs is TryLock for a holder of a number, which isn't 0.
func (g *Gate) TryLockAs(holder int32) bool { return g.holder.CompareAndSwap(0, holder) }

// Holder is the number of who holds the gate: 1 if they did not say, 0 if nobody does.
func (g *Gate) Holder() int32 { return g.holder.Load() }

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
	g.holder.Store(0)
	select {
	case g.opened <- struct{}{}:
	default:
	}
}
