package cuda

import "github.com/leat-go/leat/device/driver"

var _ driver.Router = (*gpu)(nil)

// Attributes of a pair of devices.
const (
	pairPerformanceRank = 1
	pairAccess          = 2
	pairAtomics         = 3
)

// Way is told by what a way can do: the driver has no name for it. Atomic operations of
// the device's own travel over NVLink and not over PCIe.
func (d *gpu) Way(other driver.Device) driver.Way {
	to := peer(other)
	switch {
	case to == nil:
		return driver.Way{}
	case to.ctx == d.ctx:
		return driver.Way{Kind: driver.SameMemory}
	}
	if why := d.peers.why(to); why != "" {
		return driver.Way{Kind: driver.ThroughHost, Why: why}
	}
	if d.cu.deviceGetP2PAttribute == 0 {
		return driver.Way{}
	}
	g := newGroup(d, "Way") // it needs no context
	defer g.end()
	w := driver.Way{Kind: driver.PCIe, Rank: g.pair(to, pairPerformanceRank)}
	switch {
	case g.pair(to, pairAccess) == 0:
		w = driver.Way{Kind: driver.ThroughHost, Why: "the driver has no direct way to " + to.name}
	case g.pair(to, pairAtomics) != 0:
		w.Kind = driver.NVLink
	}
	return w
}

// pair is an attribute of the way from the group's device to another, 0 where the driver
// does not know it.
func (g *group) pair(to *gpu, attribute uintptr) int {
	if g.call(g.gpu.cu.deviceGetP2PAttribute, g.result0(), attribute, uintptr(g.gpu.ordinal), uintptr(to.ordinal)) != success {
		return 0
	}
	return g.number(0)
}

// Stage closes the memory of both to each other. The driver's copies then go through the
// host by themselves.
func (d *gpu) Stage(other driver.Device, why string) error {
	const op = "Stage"
	to := peer(other)
	if to == nil {
		return d.invalid(op, "the other device is no GPU")
	}
	if d.cu.ctxDisablePeerAccess == 0 {
		return d.unsupported(op, "cuCtxDisablePeerAccess")
	}
	for _, way := range [][2]*gpu{{d, to}, {to, d}} {
		if err := way[0].shut(op, way[1]); err != nil {
			return err
		}
		way[0].peers.stage(way[1], why)
	}
	return nil
}

// shut has d's context use other's memory no more.
func (d *gpu) shut(op string, other *gpu) error {
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	r := g.call(d.cu.ctxDisablePeerAccess, other.ctx)
	if r == peerAccessNotEnabled {
		r = success
	}
	return g.leave(r)
}

// stage notes that the way to other leads through the host, so that no copy opens it again.
func (p *peers) stage(other *gpu, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.staged == nil {
		p.staged = make(map[*gpu]string)
	}
	p.staged[other] = why
	if p.ready == nil {
		p.ready = make(map[*gpu]bool)
	}
	p.ready[other] = true
}

func (p *peers) why(other *gpu) string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.staged[other]
}
