package device

import "github.com/leat-go/leat/device/driver"

// What follows tells a checker (package device/order) what it can't see. Where no checker
// watches the device it does nothing, and costs a comparison.

// Access says what is done with memory.
type Access = driver.Access

// The kinds of access.
const (
	In    = driver.In    // read only
	Out   = driver.Out   // overwritten whole, not read
	InOut = driver.InOut // both
)

// HostReads tells the checker that the host reads mem, which work of d may have written,
// from now until work that writes it is submitted. The error is an *order.Error: the host
// has not waited for such work. mem may be memory of any kind.
func (d *Device) HostReads(mem []byte) error {
	if d.observer == nil || len(mem) == 0 {
		return nil
	}
	return d.observer.HostAccess(mem, In)
}

// HostWrites tells the checker that the host writes mem, from now until work that uses it
// is submitted. It is otherwise like HostReads.
func (d *Device) HostWrites(mem []byte) error {
	if d.observer == nil || len(mem) == 0 {
		return nil
	}
	return d.observer.HostAccess(mem, Out)
}

// Uses tells the checker that work submitted to s at this point by other means uses v: a
// kernel of another library that has the stream's handle, or a HostFunc. Like any other
// use it is ErrInvalid with memory of another device.
func (s *Stream) Uses(v View, a Access) error {
	if err := s.uses("Uses", v); err != nil {
		return err
	}
	if s.dev.observer == nil || v.bytes == 0 {
		return nil
	}
	return s.dev.observer.StreamAccess(s.h, v.addr, v.bytes, a)
}

// A Witness is for a goroutine that waits for events only to learn which memory it may
// use again. To the checker, what a wait on the host has seen is known to the whole
// program: all work submitted later is ordered behind it. For such a goroutine that would
// be luck, since it might have come later; when it happens to come early it would hide
// that another wait is missing.
//
// Waits for events that were made with a Witness (EventOptions.Witness) count for the
// Witness alone. AtRest and HostAtRest tell the program which memory is free again, and
// Tell tells it everything that was seen. A nil Witness, which NewWitness returns if no
// checker watches, does nothing.
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

// AtRest says that all work that used v has ended, and that v may be used again in any
// way. The error is an *order.Error: there is work with v that neither w nor the rest of
// the program has waited for.
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

// Tell makes what w has seen count for the whole program from now on, as a wait without a
// Witness does. Call it before a function returns whose callers rely on its wait.
func (w *Witness) Tell() {
	if w != nil {
		w.w.Tell()
	}
}

// Describe gives the buffer a description in the checker's reports: what describes the
// bytes from offset on, and may add what to do about a mistake with them. It may be called
// at any time, also after Close, and must call no device.
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
