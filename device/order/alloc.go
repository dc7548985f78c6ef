package order

import "github.com/leat-go/leat/device/driver"

// Alloc, and every method below up to HostAddress, is driver.Device's.
func (d *Device) Alloc(bytes int64) (driver.Address, error) {
	p, err := d.Device.Alloc(bytes)
	if err != nil {
		return p, d.ended(err)
	}
	d.gave(&block{lo: uint64(p), hi: uint64(p) + uint64(bytes), kind: "a buffer"})
	return p, nil
}

func (d *Device) AllocHost(bytes int64, config driver.HostConfig) ([]byte, error) {
	mem, err := d.Device.AllocHost(bytes, config)
	if err != nil {
		return mem, d.ended(err)
	}
	d.gave(hostBlock(mem, "a host buffer"))
	return mem, nil
}

func (d *Device) RegisterHost(mem []byte, config driver.HostConfig) error {
	if err := d.Device.RegisterHost(mem, config); err != nil {
		return d.ended(err)
	}
	d.gave(hostBlock(mem, registered))
	return nil
}

const registered = "registered memory"

func hostBlock(mem []byte, kind string) *block {
	return &block{lo: start(mem), hi: start(mem) + uint64(len(mem)), kind: kind}
}

// gave notes memory that the device knows from now on.
func (d *Device) gave(b *block) {
	c := d.checker
	b.site = c.here("Alloc", "", 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.memory.find(b.lo); b.kind == registered && old != nil && b.hi <= old.hi {
		return // pinned on a second device
	}
	c.memory.add(b)
}

func (d *Device) Free(p driver.Address) error {
	c := d.checker
	x := span{lo: uint64(p), write: true}
	c.mu.Lock()
	if b := c.memory.find(x.lo); b != nil {
		x.hi = b.hi
	}
	c.mu.Unlock()
	return d.free(opFree, x, func() error { return d.Device.Free(p) })
}

func (d *Device) FreeHost(mem []byte) error {
	return d.free(opFreeHost, hostSpan(mem, true), func() error { return d.Device.FreeHost(mem) })
}

func (d *Device) UnregisterHost(mem []byte) error {
	return d.free(opUnregisterHost, hostSpan(mem, true), func() error { return d.Device.UnregisterHost(mem) })
}

// free ends memory. For the order it is a write by the host.
func (d *Device) free(op string, x span, free func() error) error {
	if err := d.hostUses(op, x, nil, 2); err != nil {
		return err
	}
	if err := free(); err != nil {
		return d.ended(err)
	}
	c := d.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.memory.find(x.lo); b != nil && b.lo == x.lo && b.hi == x.hi {
		c.memory.remove(b)
	}
	return nil
}

func (d *Device) HostAddress(mem []byte) (driver.Address, error) {
	p, err := d.Device.HostAddress(mem)
	if err != nil {
		return p, d.ended(err)
	}
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	d.checker.memory.see(mem, uint64(p))
	return p, nil
}

// hostUses is an access by the host, which comes after all that it, or w if not nil, has
// seen the end of. It need not be remembered: whatever is submitted later comes after
// it.
func (d *Device) hostUses(op string, x span, w *witness, skip int) error {
	c := d.checker
	if x.hi <= x.lo || d.lost.Load() {
		return nil
	}
	by := c.here(op, "", skip+1)
	c.mu.Lock()
	seen := c.host
	if w != nil {
		w.seen.join(c.host)
		seen = w.seen
	}
	f, found := c.find(d, &c.shadow, []span{x}, seen, nil, by)
	if x.write && !found {
		c.shadow.drop(x.lo, x.hi) // the host has seen the end of all that was there
	}
	c.mu.Unlock()
	if !found {
		return nil
	}
	e := c.report(f)
	if c.options.ListOnly {
		return nil
	}
	return d.fail(op, e)
}

// HostAccess, and every method below, is driver.Observer's.
func (d *Device) HostAccess(mem []byte, a driver.Access) error {
	op := "HostReads"
	if a != driver.In {
		op = "HostWrites"
	}
	return d.hostUses(op, hostSpan(mem, a != driver.In), nil, 1)
}

func (d *Device) StreamAccess(s driver.Stream, p driver.Address, bytes int64, a driver.Access) error {
	spans := [1]span{d.span(p, bytes, a != driver.In)}
	w, err := d.begin("Uses", "", s, spans[:])
	if err != nil {
		return err
	}
	return d.submitted(w, s, spans[:])
}

func (d *Device) Describe(p driver.Address, what func(offset, bytes int64) (name, hint string)) {
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	if b := d.checker.memory.find(d.checker.memory.at(uint64(p))); b != nil {
		b.describe = what
	}
}

// NewWitness implements driver.Observer.
func (d *Device) NewWitness() driver.Witness { return &witness{device: d} }

// A witness is a part of the host that sees more than the rest.
type witness struct {
	device *Device
	seen   clock // guarded by the Checker's mutex
}

// AtRest implements driver.Witness: for the order it is a write by the host.
func (w *witness) AtRest(p driver.Address, bytes int64) error {
	return w.device.hostUses(opAtRest, w.device.span(p, bytes, true), w, 1)
}

// Tell implements driver.Witness.
func (w *witness) Tell() {
	c := w.device.checker
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sees(w.seen)
}
