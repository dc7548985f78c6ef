package order

import "github.com/leat-go/leat/device/driver"

// PeerOf, and every method below, is driver.Peer's.
func (d *Device) PeerOf(other driver.Device) bool {
	p, ok := d.Device.(driver.Peer)
	return ok && p.PeerOf(other)
}

func (d *Device) WaitPeer(s driver.Stream, other driver.Device, e driver.Event) error {
	p, err := d.peer("Wait")
	if err != nil {
		return err
	}
	if err := p.WaitPeer(s, other, e); err != nil {
		return d.ended(err)
	}
	if of := d.beside(other); of != nil {
		d.waited(s, of, e)
	}
	return nil
}

// CopyPeer uses memory of two devices in order of a stream of one.
func (d *Device) CopyPeer(s driver.Stream, dst, src driver.Place, bytes int64) error {
	p, err := d.peer("CopyPeer")
	if err != nil {
		return err
	}
	spans := [2]span{d.span(src.Address, bytes, false), d.span(dst.Address, bytes, true)}
	w, err := d.begin("CopyPeer", "", s, spans[:])
	if err != nil {
		return err
	}
	if err := p.CopyPeer(s, dst, src, bytes); err != nil {
		return d.ended(err)
	}
	return d.submitted(w, s, spans[:])
}

func (d *Device) peer(op string) (driver.Peer, error) {
	p, ok := d.Device.(driver.Peer)
	if !ok {
		return nil, &driver.Error{Op: op, Device: d.name, Err: driver.ErrUnsupported}
	}
	return p, nil
}

// beside is the Device of d's Checker among other's wrappers, nil if there is none.
func (d *Device) beside(other driver.Device) *Device {
	for {
		if of, ok := other.(*Device); ok && of.checker == d.checker {
			return of
		}
		w, ok := other.(driver.Wrapper)
		if !ok {
			return nil
		}
		other = w.Unwrap()
	}
}
