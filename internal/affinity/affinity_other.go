//go:build !linux

package affinity

// A Set is processors to be on: elsewhere than on Linux there is none.
type Set struct{}

// New is nil: nothing can be chosen.
func New([]int) *Set { return nil }

// Len and Move are of a Set that there is not.
func (*Set) Len() int { return 0 }
func (*Set) Move()    {}
