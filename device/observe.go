package device

import "github.com/leat-go/leat/device/driver"

// What follows tells a checker of orders (device/order) what it can't see. Where no
// checker watches the device, it does nothing and costs a comparison.

// Access says what is done with memory.
type Access = driver.Access

// The kinds of access.
const (
	In    = driver.In    // read only
	Out   = driver.Out   // overwritten whole, not read
	InOut = driver.InOut // both
)

// HostReads tells the checker that the host reads mem, which work of d may have written, from now
// until work that writes it is submitted. The error is an *order.Error: the host has
// not waited for such work. mem may be memory of any kind.
func (d *Device) HostReads(mem []byte) error {
	if d.observer == nil || len(mem) == 0 {
		return nil
	}
	return d.observer.HostAccess(mem, In)
}

// HostWrites tells the checker that the host writes mem from now until work that uses it is
// submitted. What holds for HostReads holds for it.
func (d *Device) HostWrites(mem []byte) error {
	if d.observer == nil || len(mem) == 0 {
		return nil
	}
	return d.observer.HostAccess(mem, Out)
}

// Uses tells that work submitted to s at this point by other means uses v: a kernel of
// another library that has the stream's handle, or a HostFunc.
func (s *Stream) Uses(v View, a Access) error {
	if err := s.uses("Uses", v); err != nil {
		return err
	}
	if s.dev.observer == nil || v.bytes == 0 {
		return nil
	}
	return s.dev.observer.StreamAccess(s.h, v.addr, v.bytes, a)
}

// A Witness stands for a part of a program, a goroutine for example, that waits on the
// host for events of its own (EventOptions.Witness). The checker counts what such a wait
// has seen for that part only, and not for the whole program. For example, a goroutine
// waits for copies in order to use their buffers again. It may see a copy's end before
// some other work is submitted, but only by chance: that must not count as the order of
// the two. What it does tell the program is which memory is at rest (AtRest, HostAtRest).
// A nil Witness sees nothing.
type Witness struct {
	dev *Device
	w   driver.Witness
}

// NewWitness makes a Witness, nil where no checker watches d.
func (d *Device) NewWitness() *Witness {
	if d.observer == nil {
		return nil
	}
	return &Witness{d, d.observer.NewWitness()}
}

func (w *Witness) of() driver.Witness {
	if w == nil {
		return nil
	}
	return w.w
}

// AtRest tells that the work which used v has ended, as w or all of the host has seen,
// and that v may be used from now on in any way. The error is an *order.Error: there is
// work that neither has waited for.
func (w *Witness) AtRest(v View) error {
	if w == nil || v.bytes == 0 {
		return nil
	}
	return w.w.AtRest(v.addr, v.bytes)
}

// HostAtRest is AtRest for host memory.
func (w *Witness) HostAtRest(mem []byte) error {
	if w == nil || len(mem) == 0 {
		return nil
	}
	return w.w.AtRest(hostAddress(mem), int64(len(mem)))
}

// Tell makes all that w has seen the end of count for the whole program, as a wait
// without a Witness does: for a function whose callers rely on its wait.
func (w *Witness) Tell() {
	if w != nil {
		w.w.Tell()
	}
}

// Describe says what the buffer is in a checker's reports: what describes bytes of it
// from offset on, and may add what to do about a mistake with them. It is called at
// any time until the buffer is freed, and after that too, and must call no device.
func (b *Buffer) Describe(what func(offset, bytes int64) (name, hint string)) {
	if o := b.view.dev.observer; o != nil && b.owned && !b.view.owner.closed.Load() {
		o.Describe(b.view.addr, what)
	}
}

// Describe is Buffer's.
func (h *HostBuffer) Describe(what func(offset, bytes int64) (name, hint string)) {
	if o := h.dev.observer; o != nil && len(h.mem) > 0 && !h.closing.closed.Load() {
		o.Describe(hostAddress(h.mem), what)
	}
}
