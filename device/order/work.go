package order

import (
	"fmt"

	"github.com/leat-go/leat/device/driver"
)

// work is a call that submits some, between its two halves.
type work struct {
	site    *site
	changes uint64 // when it was found to be ordered
}

// begin looks whether a call's accesses are ordered behind all others, and returns the
// report if they are not. skip counts the frames up to the driver's method.
func (d *Device) begin(op, kernel string, h driver.Stream, spans []span) (work, error) {
	c := d.checker
	w := work{site: c.here(op, kernel, 2)}
	if c.options.ListOnly {
		return w, nil
	}
	c.mu.Lock()
	s := d.handles[h]
	if s == nil || d.lost.Load() {
		c.mu.Unlock()
		return w, nil
	}
	by, m := s.stream.place()
	w.changes = c.changes
	f, found := c.find(d, m, spans, by.seen, by, w.site)
	c.mu.Unlock()
	if found {
		return w, d.fail(op, c.report(f))
	}
	return w, nil
}

// submitted notes the accesses of a call that the driver has accepted. If those of another
// goroutine have come between, they are looked at once more.
func (d *Device) submitted(w work, h driver.Stream, spans []span) error {
	c := d.checker
	c.mu.Lock()
	s := d.handles[h]
	if s == nil || d.lost.Load() {
		c.mu.Unlock()
		return nil
	}
	by, m := s.stream.place()
	var f finding
	found := false
	if c.options.ListOnly || c.changes != w.changes {
		f, found = c.find(d, m, spans, by.seen, by, w.site)
	}
	c.note(m, by, w.site, spans)
	s.stream.keep(w.site, spans)
	c.mu.Unlock()
	if !found {
		return nil
	}
	e := c.report(f)
	if c.options.ListOnly {
		return nil
	}
	return d.fail(w.site.op, e)
}

func (d *Device) fail(op string, e *Error) error {
	return &driver.Error{Op: op, Device: d.name, Err: e}
}

func nativeName(native uintptr) string { return fmt.Sprintf("native %#x", native) }

// CopyH2D, and every method below, is driver.Device's.
func (d *Device) CopyH2D(s driver.Stream, dst driver.Address, src []byte) error {
	spans := [2]span{hostSpan(src, false), d.span(dst, int64(len(src)), true)}
	w, err := d.begin("CopyH2D", "", s, spans[:])
	if err != nil {
		return err
	}
	if err := d.Device.CopyH2D(s, dst, src); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans[:])
}

func (d *Device) CopyD2H(s driver.Stream, dst []byte, src driver.Address) error {
	spans := [2]span{d.span(src, int64(len(dst)), false), hostSpan(dst, true)}
	w, err := d.begin("CopyD2H", "", s, spans[:])
	if err != nil {
		return err
	}
	if err := d.Device.CopyD2H(s, dst, src); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans[:])
}

func (d *Device) CopyD2D(s driver.Stream, dst, src driver.Address, bytes int64) error {
	spans := [2]span{d.span(src, bytes, false), d.span(dst, bytes, true)}
	w, err := d.begin("CopyD2D", "", s, spans[:])
	if err != nil {
		return err
	}
	if err := d.Device.CopyD2D(s, dst, src, bytes); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans[:])
}

func (d *Device) Memset(s driver.Stream, dst driver.Address, value byte, bytes int64) error {
	spans := [1]span{d.span(dst, bytes, true)}
	w, err := d.begin("Memset", "", s, spans[:])
	if err != nil {
		return err
	}
	if err := d.Device.Memset(s, dst, value, bytes); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans[:])
}

// HostFunc shows the host the end of what was submitted to s before, when f runs. As a
// node of a graph it shows nothing: which launch it runs in it can't tell.
func (d *Device) HostFunc(s driver.Stream, f func()) error {
	seen, ok := d.streamSnapshot(s)
	if !ok || f == nil || d.captured(s) {
		if ok {
			d.checker.grant(seen, nil, false)
		}
		return d.ended(d.Device.HostFunc(s, f))
	}
	err := d.Device.HostFunc(s, func() {
		d.checker.grant(seen, nil, true)
		f()
	})
	if err != nil {
		d.checker.grant(seen, nil, false)
	}
	return d.ended(err)
}

func (d *Device) Launch(s driver.Stream, l *driver.Launch) error {
	var all [driver.MaxArgs]span
	spans := all[:0]
	for i := range l.Args.Len() {
		if a := l.Args.Arg(i); a.Access != driver.Scalar {
			spans = append(spans, d.span(driver.Address(a.Value), a.Bytes, a.Access != driver.In))
		}
	}
	name := ""
	if l.Kernel != nil {
		name = l.Kernel.Name
	}
	w, err := d.begin("Launch", name, s, spans)
	if err != nil {
		return err
	}
	if err := d.Device.Launch(s, l); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans)
}

func (d *Device) span(p driver.Address, bytes int64, write bool) span {
	d.checker.mu.Lock()
	defer d.checker.mu.Unlock()
	return d.checker.deviceSpan(p, bytes, write)
}
