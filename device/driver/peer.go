package driver

// Peer is a Device that works together with others of its kind: its streams wait
// for their events, and copy from their memory and into it. A driver that can't is
// only a Device. So is a wrapper that embeds one, unless it passes these calls on and
// is a Wrapper.
//
// The other devices come as their callers hold them, wrapped or not; a driver finds
// its own with Unwrap.
type Peer interface {
	Device
	// PeerOf reports whether WaitPeer and CopyPeer accept other. It is constant and
	// cheap, and other says the same of this device.
	PeerOf(other Device) bool
	// WaitPeer is Wait for an event of another device.
	WaitPeer(s Stream, other Device, e Event) error
	// CopyPeer copies bytes between this device and another, one of which src is
	// on and the other dst, in order of s, a stream of this device.
	CopyPeer(s Stream, dst, src Place, bytes int64) error
}

// A Place is an address and the device that it belongs to.
type Place struct {
	Device  Device
	Address Address
}

// Wrapper is a Device around another.
type Wrapper interface {
	Unwrap() Device
}

// Unwrap is the device inside all of d's wrappers; d itself if it is none.
func Unwrap(d Device) Device {
	for {
		w, ok := d.(Wrapper)
		if !ok {
			return d
		}
		d = w.Unwrap()
	}
}
