package pinnedpool

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// fallbackBudget serves where the machine doesn't say how much memory it has.
const fallbackBudget = 1 << 30

// The limits of control groups are read by a module from outside: there are two versions
// of them, nested and mounted in several ways. It stands here and not in a package that
// a program would have to import, because a default that is too large in a container
// ends the process.

// DefaultBudget is a quarter of the memory that this process may use: the least of
// the machine's memory, the control group's limit and Go's own (GOMEMLIMIT). Pinned
// memory can't be swapped out, and three quarters are left for all else.
func DefaultBudget() int64 {
	limit := uint64(math.MaxUint64)
	for _, ask := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := ask(); err == nil && n > 0 {
			limit = min(limit, n)
		}
	}
	if n := debug.SetMemoryLimit(-1); n > 0 && n < math.MaxInt64 {
		limit = min(limit, uint64(n))
	}
	if limit == math.MaxUint64 {
		return fallbackBudget
	}
	return int64(min(limit/4, math.MaxInt64))
}
