package driver

import "fmt"

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

// Router is a Peer that knows, and can choose, the ways between memories.
type Router interface {
	Peer
	// Way is how bytes travel from this device's memory into other's. It is cheap, and
	// submits nothing.
	Way(other Device) Way
	// Stage makes all copies between the two devices, both ways, go through host memory from
	// now on. why is what Way tells of it. ErrUnsupported if the driver can't.
	Stage(other Device, why string) error
}

// A Way is how bytes travel from one device's memory into another's.
type Way struct {
	Kind WayKind
	// Rank orders the direct ways of a machine as the driver does: 0 is the fastest.
	Rank int
	// Why says in words what was decided on the user's behalf, if anything was.
	Why string
}

// WayKind is what a way leads over.
type WayKind uint8

// The kinds of ways.
const (
	// UnknownWay: the driver does not tell.
	UnknownWay WayKind = iota
	// SameMemory: the two devices are one.
	SameMemory
	// NVLink: directly, over links of the devices' own.
	NVLink
	// PCIe: directly, over the bus.
	PCIe
	// ThroughHost: by way of host memory.
	ThroughHost
)

var wayKinds = [...]string{
	UnknownWay:  "a way that the driver does not tell",
	SameMemory:  "the same memory",
	NVLink:      "NVLink",
	PCIe:        "PCIe",
	ThroughHost: "host memory",
}

// String is the kind in words.
func (k WayKind) String() string {
	if int(k) < len(wayKinds) {
		return wayKinds[k]
	}
	return fmt.Sprintf("WayKind(%d)", uint8(k))
}
