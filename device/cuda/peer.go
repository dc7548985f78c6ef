package cuda

import (
	"fmt"
	"sync"

	"github.com/leat-go/leat/device/driver"
)

// peers are the GPUs to which the way has been set up.
type peers struct {
	mu     sync.RWMutex
	ready  map[*gpu]bool
	staged map[*gpu]string // those to which it leads through the host by Stage, and why
}

func (p *peers) has(other *gpu) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.ready[other]
}

// peer is the GPU inside of other, nil if there is none.
func peer(other driver.Device) *gpu {
	d, _ := driver.Unwrap(other).(*gpu)
	return d
}

// PeerOf: all GPUs are peers, whether or not their data has a way of its own.
func (d *gpu) PeerOf(other driver.Device) bool { return peer(other) != nil }

// WaitPeer is Wait: cuStreamWaitEvent takes events of any context.
func (d *gpu) WaitPeer(s driver.Stream, other driver.Device, h driver.Event) error {
	const op = "Wait"
	owner := peer(other)
	if owner == nil {
		return d.invalid(op, "the event is of no GPU")
	}
	if err := owner.refused(op); err != nil {
		return err
	}
	if owner != d {
		switch e := owner.events.get(h); {
		case e != nil && e.captured.Load() > 0:
			if !owner.captures.underWay(e.captured.Load()) {
				return owner.capturedEvent(op, e)
			}
			return owner.spoil(op, driver.CaptureUnsupported, "a capture keeps to one device")
		case d.captured(op, s):
			return d.spoil(op, driver.CaptureIsolation, "the event is another device's")
		}
	}
	return d.wait(s, owner, h)
}

// CopyPeer copies over NVLink or PCIe where the GPUs reach each other's memory, and
// else through host memory, which the driver arranges.
func (d *gpu) CopyPeer(s driver.Stream, dst, src driver.Place, bytes int64) error {
	const op = "CopyPeer"
	to, from := peer(dst.Device), peer(src.Device)
	switch {
	case to == nil || from == nil:
		return d.invalid(op, "one side is on no GPU")
	case to != d && from != d:
		return d.invalid(op, "the stream belongs to neither of the two devices")
	case bytes < 0:
		return d.invalid(op, fmt.Sprintf("%d bytes asked for", bytes))
	}
	other := to
	if other == d {
		other = from
	}
	if err := other.refused(op); err != nil {
		return err
	}
	if other.ctx == d.ctx { // two Devices of one GPU
		return d.CopyD2D(s, dst.Address, src.Address, bytes)
	}
	if d.cu.memcpyPeerAsync == 0 {
		return d.unsupported(op, "cuMemcpyPeerAsync")
	}
	if !d.peers.has(other) {
		if err := d.meet(op, other); err != nil {
			return err
		}
	}
	g, err := d.enterStream(op, s)
	if err != nil {
		return err
	}
	return g.leaveStream(s, g.call(d.cu.memcpyPeerAsync,
		uintptr(dst.Address), to.ctx, uintptr(src.Address), from.ctx, uintptr(bytes), uintptr(s)))
}

// meet opens the memory of d and other to each other, once. A way that can't be
// opened is a note and no error: copies are slower without.
func (d *gpu) meet(op string, other *gpu) error {
	d.peers.mu.Lock()
	defer d.peers.mu.Unlock()
	if d.peers.ready[other] {
		return nil
	}
	for _, way := range [][2]*gpu{{d, other}, {other, d}} {
		if err := way[0].reach(op, way[1]); err != nil {
			return err
		}
	}
	if d.peers.ready == nil {
		d.peers.ready = make(map[*gpu]bool)
	}
	d.peers.ready[other] = true
	return nil
}

// reach lets d's context use other's memory. The error is a fault's.
func (d *gpu) reach(op string, other *gpu) error {
	if d.cu.deviceCanAccessPeer == 0 || d.cu.ctxEnablePeerAccess == 0 {
		return nil // the symbols' notes say so
	}
	g, err := d.enter(op)
	if err != nil {
		return err
	}
	r := g.call(d.cu.deviceCanAccessPeer, g.result0(), uintptr(d.ordinal), uintptr(other.ordinal))
	if r == success {
		r = peerAccessUnsupported
		if g.number(0) != 0 {
			r = g.call(d.cu.ctxEnablePeerAccess, other.ctx, 0)
		}
	}
	switch {
	case r == success || causes[r].err == driver.ErrFault:
		return g.leave(r)
	case r != peerAccessAlreadyEnabled: // another library, or a copy of other's, may have been first
		d.note(fmt.Sprintf("%s can't reach the memory of %s (CUDA error %d %s): copies between the two go through host memory",
			d.name, other.name, r, g.errorName(r)))
	}
	return g.leave(success)
}
