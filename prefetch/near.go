package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/affinity"
	"github.com/leat-go/leat/loader"
)

// near is pinned memory in a machine of several NUMA nodes: the workers that write to it
// move to the processors of its node, as many of them as there are of those. The others
// stay where they are, since more processors for the decoding are worth more than near
// memory.
type near struct {
	*pinned
	processors *affinity.Set
	workers    int
}

// placed is the memory for workers to write to, and how many of them are near it.
func placed(p *pinned, props device.Properties, workers int) (mem loader.Memory, n int) {
	set := affinity.New(props.Processors)
	if set == nil {
		return p, 0
	}
	n = min(workers, set.Len())
	return near{p, set, n}, n
}

// Approach implements loader.NearMemory.
func (f near) Approach(worker int) {
	if worker < f.workers {
		f.processors.Move()
	}
}

// nearNote tells of it in the Plan.
func nearNote(n, workers, node int) string {
	if n == workers {
		return fmt.Sprintf("all workers move to the processors of NUMA node %d, where the pinned memory is", node)
	}
	return fmt.Sprintf("%d of %d workers move to the processors of NUMA node %d, where the pinned memory is; it has no more", n, workers, node)
}
