package devicetest

import "github.com/leat-go/leat/device/driver"

// Unwrap implements driver.Wrapper.
func (t *Tap) Unwrap() driver.Device { return t.Device }

// PeerOf, and every method below, is driver.Peer's.
func (t *Tap) PeerOf(other driver.Device) bool {
	p, ok := t.Device.(driver.Peer)
	return ok && p.PeerOf(other)
}

func (t *Tap) WaitPeer(s driver.Stream, other driver.Device, e driver.Event) error {
	of, _ := other.(*Tap)
	if skip, err := t.pass(Wait, subject{stream: s, event: e, of: of}); skip {
		return err
	}
	p, err := t.peer(Wait)
	if err != nil {
		return err
	}
	return p.WaitPeer(s, other, e)
}

func (t *Tap) CopyPeer(s driver.Stream, dst, src driver.Place, bytes int64) error {
	if skip, err := t.pass(CopyPeer, subject{stream: s}); skip {
		return err
	}
	p, err := t.peer(CopyPeer)
	if err != nil {
		return err
	}
	return p.CopyPeer(s, dst, src, bytes)
}

func (t *Tap) peer(op Op) (driver.Peer, error) {
	p, ok := t.Device.(driver.Peer)
	if !ok {
		return nil, t.wrap(op, driver.ErrUnsupported)
	}
	return p, nil
}
