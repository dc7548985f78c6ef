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

// HostReads tells that the host reads mem, which work of d may have written, from now
// until work that writes it is submitted. The error is an *order.Error: the host has
// not waited for such work. mem may be memory of any kind.
func (d *Device) HostReads(mem []byte) error {
	if d.observer == nil || len(mem) == 0 {
		return nil
	}
	return d.observer.HostAccess(mem, In)
}

// HostWrites tells that the host writes mem from now until work that uses it is
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
	if s.dev.observer == nil || v.bytes == 0 {
		return nil
	}
	return s.dev.observer.StreamAccess(s.h, v.addr, v.bytes, a)
}

// A Witness is a part of a program that waits on the host for events of its own, made
// with it, and passes on no more of what it has seen than which memory is at rest. A
// goroutine that frees buffers behind their copies is one: that it has seen a copy's
// end, by chance before some other work was submitted, does not order that work, though
// it would if it were taken for all of the host. A nil Witness sees nothing.
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

// Tell passes on all that w has seen the end of: the caller's caller waits for that.
func (w *Witness) Tell() {
	if w != nil {
		w.w.Tell()
	}
}

// Describe says what the buffer is in a checker's reports: what describes bytes of it
// from offset on, and may add what to do about a mistake with them. It is called at
// any time until the buffer is freed, and after that too, and must call no device.
func (b *Buffer) Describe(what func(offset, bytes int64) (name, hint string)) {
	if o := b.view.dev.observer; o != nil && b.owned {
		o.Describe(b.view.addr, what)
	}
}

// Describe is Buffer's.
func (h *HostBuffer) Describe(what func(offset, bytes int64) (name, hint string)) {
	if o := h.dev.observer; o != nil && len(h.mem) > 0 {
		o.Describe(hostAddress(h.mem), what)
	}
}
