package prefetch

// A gate is a mutex for what waits while it is held. Waiting for it is waiting for a
// channel: under the virtual time of a test a mutex would hold up what its holder
// waits for.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

func (g gate) TryLock() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}
