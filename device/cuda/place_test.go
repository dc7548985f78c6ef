//go:build !leat_nocuda && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/device/internal/topology"
)

// fourGPUs is a machine with a GPU on node 0, one on node 1, one of which the bus says
// nothing, and one on node 2, which has memory and no processors.
func fourGPUs() topology.System {
	sys := fstest.MapFS{}
	for file, text := range map[string]string{
		"devices/system/node/online":             "0-2",
		"devices/system/node/has_memory":         "0-2",
		"devices/system/node/node0/cpulist":      "0-3",
		"devices/system/node/node1/cpulist":      "4-7",
		"devices/system/node/node2/cpulist":      "",
		"devices/system/node/node2/distance":     "40 20 10",
		"bus/pci/devices/0000:00:00.0/numa_node": "0",
		"bus/pci/devices/0000:10:00.0/numa_node": "1",
		"bus/pci/devices/0000:20:00.0/numa_node": "-1",
		"bus/pci/devices/0000:30:00.0/numa_node": "2",
	} {
		sys[file] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	return topology.New(sys)
}

// openPlaced opens a GPU in that machine, of which the driver shows those of visible.
func openPlaced(t *testing.T, visible []int, o Options) *device.Device {
	f, s := newFake(t)
	f.does("cuDeviceGetCount", func(a []uintptr) result { write(a[0], int32(len(visible))); return success })
	f.does("cuDeviceGet", func(a []uintptr) result { write(a[0], int32(visible[a[1]])); return success })
	f.does("cuDeviceGetPCIBusId", func(a []uintptr) result {
		writeText(a[0], fmt.Sprintf("0000:%d0:00.0\x00", a[2]))
		return success
	})
	f.does("cuDeviceGetAttribute", func(a []uintptr) result {
		switch a[1] {
		case attributeComputeMajor:
			write(a[0], int32(9))
		case attributeHostNUMANode, attributeNUMAConfig, attributeNUMANode:
			return invalidValue // an older driver
		default:
			write(a[0], int32(0))
		}
		return success
	})
	d := newGPU(s, o)
	d.host = fourGPUs()
	d, err := d.open(o, nil)
	require.NoError(t, err)
	dev := device.New(d)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// The node is that of the GPU that was opened, whatever its number among those that the
// driver shows.
func TestTheNodeIsTheOpenedDevices(t *testing.T) {
	uuid := func(ordinal int) string { return fmt.Sprintf("01234567-89ab-cdef-fedc-ba987654323%d", ordinal) }
	for name, c := range map[string]struct {
		visible    []int
		o          Options
		node       int
		processors []int
		note       string
	}{
		"all, the first":        {[]int{0, 1, 2, 3}, Options{}, 0, []int{0, 1, 2, 3}, "from NUMA node 0, the device's"},
		"a shuffled list":       {[]int{3, 1}, Options{Index: 1}, 1, []int{4, 5, 6, 7}, "from NUMA node 1, the device's"},
		"no processors there":   {[]int{3, 1}, Options{}, 1, []int{4, 5, 6, 7}, "the nearest with processors and memory of the host's own: the device's is 2"},
		"by UUID":               {[]int{3, 1, 0}, Options{UUID: "GPU-" + uuid(0)}, 0, []int{0, 1, 2, 3}, "from NUMA node 0"},
		"a part of a GPU":       {[]int{2, 1}, Options{UUID: "MIG-" + uuid(1)}, 1, []int{4, 5, 6, 7}, "from NUMA node 1"},
		"the bus does not say":  {[]int{2}, Options{}, -1, nil, "the system does not say which of its 3 is next to the device"},
		"nobody is numbered so": {[]int{7}, Options{}, -1, nil, "the system does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			p := openPlaced(t, c.visible, c.o).Properties()
			require.Equal(t, c.node, p.Node)
			require.Equal(t, c.processors, p.Processors)
			require.Contains(t, fmt.Sprint(p.Notes), c.note)
		})
	}
}
