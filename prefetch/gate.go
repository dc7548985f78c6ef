package prefetch

import "sync/atomic"

// A gate is a lock that may be held while its holder waits. Lock waits for a channel: under
// the virtual time of a test a mutex would hold up what its holder waits for.
type gate struct {
	held atomic.Bool
	// opened holds a token from an Unlock until somebody tries again.
	opened chan struct{}
}

func newGate() gate { return gate{opened: make(chan struct{}, 1)} }

func (g *gate) TryLock() bool { return g.held.CompareAndSwap(false, true) }

func (g *gate) Lock() {
	for !g.TryLock() {
		<-g.opened
	}
}

func (g *gate) Unlock() {
	g.held.Store(false)
	select {
	case g.opened <- struct{}{}:
	default:
	}
}
