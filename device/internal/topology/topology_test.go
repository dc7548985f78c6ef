package topology

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// machine has four nodes: 0 and 1 with processors, 2 with memory alone, 3 a GPU's own
// memory.
func machine(pci map[string]string) System {
	sys := fstest.MapFS{}
	put := func(file, text string) { sys[file] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("devices/system/node/online", "0-3")
	put("devices/system/node/has_memory", "0-3")
	for n, text := range []string{"0-3,8", "4-7", "", ""} {
		put(New(nil).node(n, "cpulist"), text)
	}
	put("devices/system/node/node0/distance", "10 20 30 40")
	put("devices/system/node/node1/distance", "20 10 30 40")
	put("devices/system/node/node2/distance", "30 15 10 40")
	put("devices/system/node/node3/distance", "80 40 60 10")
	for address, node := range pci {
		put("bus/pci/devices/"+address+"/numa_node", node)
	}
	return New(sys)
}

func TestNear(t *testing.T) {
	m := machine(map[string]string{"0000:1b:00.0": "0", "0000:5e:00.0": "1", "0000:86:00.0": "-1", "0000:af:00.0": "2", "0009:01:00.0": "3"})
	near := func(node int, processors ...int) Place { return Place{Node: node, Processors: processors} }
	for name, c := range map[string]struct {
		device Device
		want   Place
		why    string
	}{
		"the first node":                  {Device{"0000:1B:00.0", -1, -1}, near(0, 0, 1, 2, 3, 8), "node 0, the device's"},
		"the second":                      {Device{"0000:5E:00.0", -1, -1}, near(1, 4, 5, 6, 7), "node 1, the device's"},
		"the bus goes before the driver":  {Device{"0000:5E:00.0", 0, -1}, near(1, 4, 5, 6, 7), "node 1, the device's"},
		"the bus does not say":            {Device{"0000:86:00.0", -1, -1}, near(-1), "does not say which of its 4"},
		"the driver does":                 {Device{"0000:86:00.0", 1, -1}, near(1, 4, 5, 6, 7), "node 1, the device's"},
		"no processors there":             {Device{"0000:AF:00.0", -1, -1}, near(1, 4, 5, 6, 7), "node 1, the nearest with processors and memory of the host's own: the device's is 2"},
		"the GPU's own memory":            {Device{"0009:01:00.0", -1, 3}, near(1, 4, 5, 6, 7), "the device's is 3"},
		"processors, but the GPU's own":   {Device{"0000:1B:00.0", -1, 0}, near(1, 4, 5, 6, 7), "the device's is 0"},
		"an address that nobody has":      {Device{"0000:FF:1F.0", -1, -1}, near(-1), "does not say"},
		"a device without an address":     {Device{"", -1, -1}, near(-1), "does not say"},
		"a node that does not exist":      {Device{"", 9, -1}, near(0, 0, 1, 2, 3, 8), "the device's is 9"},
		"an address that climbs in sysfs": {Device{"../../..", -1, -1}, near(-1), "does not say"},
	} {
		t.Run(name, func(t *testing.T) {
			got := m.Near(c.device)
			require.Contains(t, got.Why, c.why)
			got.Why = ""
			require.Equal(t, c.want, got)
		})
	}
}

// With one node, or none that is known, there is nothing to choose and nothing to tell.
func TestNearInAPlainMachine(t *testing.T) {
	one := fstest.MapFS{
		"devices/system/node/online":                  {Data: []byte("0\n")},
		"devices/system/node/node0/cpulist":           {Data: []byte("0-1\n")},
		"bus/pci/devices/0000:00:04.0/numa_node":      {Data: []byte("0\n")},
		"devices/system/node/has_memory":              {Data: []byte("0\n")},
		"devices/system/node/node0/unrelated-garbage": {Data: []byte("x")},
	}
	for name, s := range map[string]System{"one node": New(one), "no sysfs": New(fstest.MapFS{})} {
		require.Equal(t, anywhere, s.Near(Device{"0000:00:04.0", 0, -1}), name)
	}
}

func TestNoNodeServes(t *testing.T) {
	sys := fstest.MapFS{
		"devices/system/node/online":     {Data: []byte("0-1")},
		"devices/system/node/has_memory": {Data: []byte("1")},
	}
	got := New(sys).Near(Device{HostNode: 1, OwnNode: -1})
	require.Equal(t, -1, got.Node)
	require.Contains(t, got.Why, "no node has both")
}

// Lists are as the kernel writes them, and whatever else is no list.
func FuzzList(f *testing.F) {
	for _, text := range []string{"", "0", "0-3,8", "0-", "-1", "3-1", "0-99999999999", "1,,2", "0-3-5", " 7 "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list := New(fstest.MapFS{"list": {Data: []byte(text)}}).list("list")
		for _, n := range list {
			if n < 0 {
				t.Errorf("%q has the number %d", text, n)
			}
		}
	})
}
