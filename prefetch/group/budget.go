package group

import (
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

const (
	// largeBatch is the size from which a pipeline has as many host slots as make
	// ringBytes, in no fewer and no more than these. Below it the slots are few bytes
	// anyway, and several batches travel in one copy.
	largeBatch     = 4 << 20
	ringBytes      = 128 << 20
	leastHostSlots = 3
	mostHostSlots  = 16
)

// divide is the options of n pipelines whose batches have so many bytes: the budget for
// pinned memory and the default for the host slots are those of all together. Machines have
// one memory, whatever the number of devices: a ring that is no larger than one device's is
// read from the processor's cache as often.
func divide(o prefetch.Options, n int, batch int64) []prefetch.Options {
	all := make([]prefetch.Options, n)
	budget := o.Memory.PinnedBytes
	if budget == 0 && n > 1 {
		budget = pinnedpool.DefaultBudget()
	}
	for i := range all {
		all[i] = o
		m := &all[i].Memory
		if budget > 0 { // else it is a mistake, or the default of one
			m.PinnedBytes = max(budget/int64(n), 1)
			if int64(i) < budget%int64(n) {
				m.PinnedBytes++
			}
		}
		if m.HostSlots == 0 && batch >= largeBatch && n > 1 {
			slots := min(ringBytes/int64(n), max(m.PinnedBytes, 0)) / batch
			m.HostSlots = max(int(min(max(slots, leastHostSlots), mostHostSlots)), m.MinHostSlots)
		}
	}
	return all
}
