// Package topology says where in a machine of several NUMA nodes the host memory and the
// processors next to a device are. What the nodes are is read from Linux's sysfs
// (Documentation/ABI/stable/sysfs-devices-node, testing/sysfs-bus-pci).
package topology

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A System is a machine, by its sysfs.
type System struct{ sys fs.FS }

// Host is this machine. Where there is no sysfs nothing is known of it.
func Host() System { return System{os.DirFS("/sys")} }

// New is a machine whose sysfs is sys.
func New(sys fs.FS) System { return System{sys} }

// A Device is what tells where one hangs.
type Device struct {
	// PCI is its address, "0000:1B:00.0". It is that of the device that was opened: the
	// numbers by which drivers and tools count cards are not the same everywhere.
	PCI string
	// HostNode is the driver's own word for the node next to it, OwnNode the node that its
	// memory is, where the system sees that as a node. −1 where there is none.
	HostNode, OwnNode int
}

// A Place is the host memory and the processors next to a device.
type Place struct {
	// Node is the NUMA node to take host memory from, −1 for any.
	Node int
	// Processors are those of the node, nil for any.
	Processors []int
	// Why says in words what was found, empty where there is one node, or none is known.
	Why string
}

var anywhere = Place{Node: -1}

// Near is the place next to d. It is the device's node where that has processors and
// memory of the host's own, and else the nearest that has.
func (s System) Near(d Device) Place {
	nodes := s.nodes()
	if len(nodes) < 2 {
		return anywhere
	}
	at := s.number(path.Join("bus/pci/devices", strings.ToLower(d.PCI), "numa_node"))
	if d.PCI == "" || at < 0 {
		at = d.HostNode
	}
	if at < 0 {
		return Place{Node: -1, Why: fmt.Sprintf("host memory and workers have no NUMA node: the system does not say which of its %d is next to the device", len(nodes))}
	}
	best := at
	if !s.serves(at, d) {
		best = s.nearest(at, nodes, d)
	}
	switch {
	case best < 0:
		return Place{Node: -1, Why: fmt.Sprintf("host memory and workers have no NUMA node: the device's is %d, and no node has both processors and memory", at)}
	case best != at:
		return Place{best, s.processors(best), fmt.Sprintf("host memory comes from NUMA node %d, the nearest with processors and memory of the host's own: the device's is %d", best, at)}
	}
	return Place{at, s.processors(at), fmt.Sprintf("host memory comes from NUMA node %d, the device's", at)}
}

// serves reports whether a node has processors and memory, which is not the device's.
func (s System) serves(node int, d Device) bool {
	return node != d.OwnNode && len(s.processors(node)) > 0 && slices.Contains(s.list("devices/system/node/has_memory"), node)
}

// nearest is the node that serves at the least distance from one, the first of several
// and −1 if none does.
func (s System) nearest(from int, nodes []int, d Device) int {
	distances := strings.Fields(s.text(s.node(from, "distance")))
	best, least := -1, 0
	for i, n := range nodes {
		if !s.serves(n, d) {
			continue
		}
		far := 255 // unreachable, in ACPI's words
		if i < len(distances) {
			if v, err := strconv.Atoi(distances[i]); err == nil {
				far = v
			}
		}
		if best < 0 || far < least {
			best, least = n, far
		}
	}
	return best
}

func (s System) nodes() []int { return s.list("devices/system/node/online") }

func (s System) processors(node int) []int { return s.list(s.node(node, "cpulist")) }

func (s System) node(n int, file string) string {
	return fmt.Sprintf("devices/system/node/node%d/%s", n, file)
}

func (s System) text(file string) string {
	b, err := fs.ReadFile(s.sys, file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number is −1 where there is none.
func (s System) number(file string) int {
	n, err := strconv.Atoi(s.text(file))
	if err != nil {
		return -1
	}
	return n
}

// list reads a list of numbers and ranges, "0-3,8". It is nil if it is empty or no list.
func (s System) list(file string) []int {
	var list []int
	for part := range strings.SplitSeq(s.text(file), ",") {
		low, high, ranges := strings.Cut(part, "-")
		from, err := strconv.Atoi(low)
		if err != nil {
			return nil
		}
		to := from
		if ranges {
			if to, err = strconv.Atoi(high); err != nil || to-from > mostNumbers {
				return nil
			}
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list
}

// mostNumbers bounds what a damaged list could ask for.
const mostNumbers = 1 << 16
