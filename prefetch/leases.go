package prefetch

import "github.com/leat-go/leat/internal/life"

// outstanding describes the leased batches.
func outstanding(windows []*window) []string {
	var leases []string
	for _, w := range windows {
		if w.state() == life.Leased {
			leases = append(leases, w.history.Lease())
		}
	}
	return leases
}

// leased is how many batches are the user's.
func leased(windows []*window) (n int) {
	for _, w := range windows {
		if w.state() == life.Leased {
			n++
		}
	}
	return n
}

// allHeld reports whether the user holds so much that nothing more can come.
func (g *stages) allHeld() bool {
	if g.ring != nil {
		return g.ring.Held()
	}
	leased := leased(g.windows)
	// Without any it is for the pool to say what is wrong.
	return leased > 0 && leased == len(g.windows)-int(g.pinned.late.Load())
}

func leaseError(windows []*window) error {
	taken := outstanding(windows)
	return &LeaseError{Outstanding: len(taken), Taken: taken}
}
