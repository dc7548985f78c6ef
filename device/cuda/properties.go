package cuda

import (
	"fmt"

	"github.com/leat-go/leat/device/driver"
	"github.com/leat-go/leat/device/internal/topology"
)

// The numbers of the device attributes that are asked for.
const (
	attributeAsyncEngineCount = 40
	attributeComputeMajor     = 75
	attributeComputeMinor     = 76
	attributeNUMAConfig       = 130
	attributeNUMANode         = 131
	attributeHostNUMANode     = 134
)

// memoryIsNode is a NUMA configuration: the system sees the GPU's memory as a node.
const memoryIsNode = 1

const (
	uuidBytes     = 16
	pciBusIDBytes = 32
)

// baselineMajor is the compute capability that the kernels' PTX needs.
const baselineMajor = 7

// describe fills p for device i and returns its ordinal. It needs no context.
func (g *group) describe(i int, p *driver.Properties) (ordinal int, err error) {
	cu := g.gpu.cu
	if r := g.call(cu.deviceGet, g.result0(), uintptr(i)); r != success {
		return 0, g.unavailable(r)
	}
	ordinal = g.number(0)
	dev := uintptr(ordinal)
	*p = driver.Properties{Kind: "cuda", Index: i}

	if r := g.call(cu.deviceGetName, g.buffer(), uintptr(len(g.text)), dev); r != success {
		return 0, g.unavailable(r)
	}
	p.Description = g.string()
	if r := g.call(cu.deviceTotalMem, g.result0(), dev); r != success {
		return 0, g.unavailable(r)
	}
	p.TotalBytes = g.size(0)

	// What follows is good to know and no reason to refuse the device.
	if cu.deviceGetUUID != 0 && g.call(cu.deviceGetUUID, g.buffer(), dev) == success {
		u := g.text[:uuidBytes]
		p.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	if cu.deviceGetPCIBusID != 0 && g.call(cu.deviceGetPCIBusID, g.buffer(), pciBusIDBytes, dev) == success {
		p.PCI = g.string()
	}
	p.CopyEngines = g.attribute(attributeAsyncEngineCount, dev)
	p.ComputeMajor = g.attribute(attributeComputeMajor, dev)
	p.ComputeMinor = g.attribute(attributeComputeMinor, dev)
	if p.ComputeMajor < baselineMajor {
		p.Notes = append(p.Notes, fmt.Sprintf("the GPU's compute capability is %d.%d, and the kernels need %d.0", p.ComputeMajor, p.ComputeMinor, baselineMajor))
	}
	return ordinal, nil
}

// attribute is 0 where the driver does not know it.
func (g *group) attribute(number, dev uintptr) int { return g.attributeOr(0, number, dev) }

func (g *group) attributeOr(unknown int, number, dev uintptr) int {
	if g.call(g.gpu.cu.deviceGetAttribute, g.result0(), number, dev) != success {
		return unknown
	}
	return g.number(0)
}

// hangs is what the driver tells of the place of the group's device in the machine.
func (g *group) hangs() topology.Device {
	dev := uintptr(g.gpu.ordinal)
	d := topology.Device{PCI: g.gpu.props.PCI, HostNode: g.attributeOr(-1, attributeHostNUMANode, dev), OwnNode: -1}
	if g.attribute(attributeNUMAConfig, dev) == memoryIsNode {
		d.OwnNode = g.attributeOr(-1, attributeNUMANode, dev)
	}
	return d
}

// string is the C string in the group's text.
func (g *group) string() string {
	for i, b := range g.text {
		if b == 0 {
			return string(g.text[:i])
		}
	}
	return string(g.text[:])
}
