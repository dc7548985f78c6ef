package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device/cpu"
	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/internal/affinity"
	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/prefetch"
)

// onNode is a device that hangs on a NUMA node.
type onNode struct {
	driver.Device
	node       int
	processors []int
}

func (d onNode) Properties() driver.Properties {
	p := d.Device.Properties()
	p.Node, p.Processors = d.node, d.processors
	return p
}

// Of the workers as many come near the pinned memory as its node has processors, the Plan
// says so, and the data is the same.
func TestWorkersNearTheDevice(t *testing.T) {
	var near []int // one processor that this process may use
	for p := 0; len(near) == 0 && p < 1024; p++ {
		if affinity.New([]int{p}) != nil {
			near = []int{p}
		}
	}
	if len(near) == 0 {
		t.Skip("this process may use one processor alone, or the system has no way to choose one")
	}
	for name, c := range map[string]struct {
		workers    int
		processors []int
		note       string
	}{
		"some":                  {3, near, "1 of 3 workers move to the processors of NUMA node 5, where the pinned memory is; it has no more"},
		"all":                   {1, near, "all workers move to the processors of NUMA node 5, where the pinned memory is"},
		"one node":              {3, nil, ""},
		"others' processors":    {3, []int{1023}, ""},
		"processors of nothing": {3, []int{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			drv, err := cpu.New(cpu.Options{})
			require.NoError(t, err)
			r := newRigOn(t, onNode{drv, 5, c.processors}, cpuSpin, canary{n: 64, width: 100}, 4, loader.Options{Workers: c.workers, Epochs: 2}, prefetch.Options{})
			defer r.close()
			require.NoError(t, r.epochs(2, 0))
			if c.note == "" {
				require.NotContains(t, r.pf.Plan().String(), "NUMA")
			} else {
				require.Contains(t, r.pf.Plan().Notes, c.note)
			}
		})
	}
}
