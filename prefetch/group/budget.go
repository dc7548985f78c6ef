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

// divide is the options of pipeline i of n whose batches have so many bytes: the budget for
// pinned memory and the default for the host slots are those of all together. Machines have
// one memory, whatever the number of devices: a ring that is no larger than one device's is
// read from the processor's cache as often.
func divide(o prefetch.Options, i, n int, batch int64) prefetch.Options {
	if n == 1 {
		return o
	}
	m := &o.Memory
	if m.PinnedBytes == 0 {
		m.PinnedBytes = pinnedpool.DefaultBudget()
	}
	if total := m.PinnedBytes; total > 0 { // else it is a mistake
		m.PinnedBytes = max(total/int64(n), 1)
		if int64(i) < total%int64(n) {
			m.PinnedBytes = total/int64(n) + 1
		}
	}
	if m.HostSlots == 0 && batch >= largeBatch {
		slots := min(ringBytes/int64(n), max(m.PinnedBytes, 0)) / batch
		m.HostSlots = max(int(min(max(slots, leastHostSlots), mostHostSlots)), m.MinHostSlots)
	}
	return o
}
