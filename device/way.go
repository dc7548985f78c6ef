package device

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/leat-go/leat/device/driver"
)

// A Way is how bytes travel from one device's memory into another's:
//
//	Kind WayKind // NVLink, PCIe, ThroughHost, …
//	Rank int     // orders the direct ways of a machine, 0 being the fastest
//	Why  string  // what was decided on the user's behalf, in words
type Way = driver.Way

// WayKind is what a Way leads over.
type WayKind = driver.WayKind

// The kinds of ways. The driver does not name NVLink: it is a direct way that carries
// atomic operations, as PCIe does not.
const (
	UnknownWay  = driver.UnknownWay
	SameMemory  = driver.SameMemory
	NVLink      = driver.NVLink
	PCIe        = driver.PCIe
	ThroughHost = driver.ThroughHost
)

// connectBytes is more than what drivers copy in one piece.
const connectBytes = 4 << 20

// Connect opens the memory of d and other to each other, so that no copy has to do that
// later, and makes sure that what is copied arrives: machines are known whose driver says
// that there is a direct way, reports success, and delivers other bytes. Random bytes go
// both ways, in streams of either device. Where they do not arrive the copies go through
// host memory from then on, if the driver can do that; the Way says so, and so do Notes.
// Else the error is ErrCorrupt, and the pair is not to be used. It is ErrUnsupported if
// the devices are no peers.
//
// The Way is that from d's memory into other's. Connect is for the start of a program: it
// takes device and pinned memory for its copies, and waits for them. The error is ctx's if
// that ends first.
func (d *Device) Connect(ctx context.Context, other *Device) (Way, error) {
	const op = "Connect"
	switch {
	case other == nil:
		return Way{}, d.invalid(op, "the other device is nil")
	case d == other:
		return Way{Kind: SameMemory}, nil
	case !d.PeerOf(other):
		return Way{}, &Error{Op: op, Device: d.name, Err: ErrUnsupported,
			Hint: fmt.Sprintf("%s is no peer of it: copy through host memory", other.seenFrom(d))}
	}
	err := arrives(ctx, d, other)
	lost := new(corruption)
	if !errors.As(err, &lost) {
		return d.tell(other), err
	}
	r := router(d.drv)
	if r == nil {
		return Way{}, d.corrupt(other, lost)
	}
	why := fmt.Sprintf("copies between %s and %s go through host memory: %v", d.name, other.seenFrom(d), lost)
	if err := r.Stage(other.drv, why); err != nil {
		return Way{}, errors.Join(d.corrupt(other, lost), err)
	}
	if err := arrives(ctx, d, other); err != nil {
		if errors.As(err, &lost) {
			err = d.corrupt(other, lost)
		}
		return Way{}, err
	}
	other.noteOnce(why)
	return d.tell(other), nil
}

func (d *Device) corrupt(other *Device, lost *corruption) error {
	return &Error{Op: "Connect", Device: d.name, Err: ErrCorrupt,
		Hint: fmt.Sprintf("%v between it and %s: use one of the two, or look at the system's IOMMU and ACS settings", lost, other.seenFrom(d))}
}

// tell is the way that the driver tells of, if it does. It is in the notes then.
func (d *Device) tell(other *Device) Way {
	r := router(d.drv)
	if r == nil {
		return Way{}
	}
	w := r.Way(other.drv)
	switch {
	case w.Kind == ThroughHost && w.Why != "":
		d.noteOnce(w.Why)
	case w.Kind == SameMemory || w.Kind == UnknownWay:
	default:
		d.noteOnce(fmt.Sprintf("copies to %s go over %v", other.seenFrom(d), w.Kind))
	}
	return w
}

// router is the first of d's wrappers, or the driver in them, that is a Router; nil if
// none is.
func router(d driver.Device) driver.Router {
	for {
		if r, ok := d.(driver.Router); ok {
			return r
		}
		w, ok := d.(driver.Wrapper)
		if !ok {
			return nil
		}
		d = w.Unwrap()
	}
}

// corruption is what arrived as other bytes.
type corruption struct {
	from, to, by string
	bytes, at    int64
}

func (c *corruption) Error() string {
	return fmt.Sprintf("of %d bytes copied from %s to %s in a stream of %s those from %d on arrived changed", c.bytes, c.from, c.to, c.by, c.at)
}

// arrives copies each way in a stream of each device. The error has a *corruption if
// other bytes came out.
func arrives(ctx context.Context, a, b *Device) (err error) {
	pair := [2]*end{{dev: a}, {dev: b}}
	defer func() { err = errors.Join(err, pair[0].rest(), pair[1].rest(), pair[0].close(), pair[1].close()) }()
	for _, e := range pair {
		if err := e.make(); err != nil {
			return err
		}
	}
	for from := range pair {
		for by := range pair {
			for _, bytes := range []int64{4 << 10, 64<<10 + 64, connectBytes} {
				if err := pair[from].send(ctx, pair[1-from], pair[by], bytes); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// An end is what one device has for the copies: memory, the bytes that it sends and those
// that arrived, a stream, and an event for what the stream has done.
type end struct {
	dev     *Device
	memory  *Buffer
	in, out *HostBuffer
	stream  *Stream
	done    *Event
}

func (e *end) make() (err error) {
	if e.stream, err = e.dev.NewStream(StreamOptions{Name: "connect"}); err != nil {
		return err
	}
	if e.done, err = e.dev.NewEvent(EventOptions{Name: "connect"}); err != nil {
		return err
	}
	if e.memory, err = e.dev.Alloc(connectBytes); err != nil {
		return err
	}
	if e.in, err = e.dev.AllocHost(connectBytes, HostOptions{}); err != nil {
		return err
	}
	_, _ = rand.NewChaCha8([32]byte{}).Read(e.in.Bytes()) // never fails
	e.out, err = e.dev.AllocHost(connectBytes, HostOptions{})
	return err
}

// send copies bytes from e to another end, in the stream of either, and compares.
func (e *end) send(ctx context.Context, to, by *end, bytes int64) error {
	src, dst := e.memory.View().Slice(0, bytes), to.memory.View().Slice(0, bytes)
	in, out := e.in.Bytes()[:bytes], to.out.Bytes()[:bytes]
	const other = 0x5a // what the copy has to overwrite
	for _, call := range []func() error{
		func() error { return e.stream.CopyH2D(src, in) },
		func() error { return e.stream.Record(e.done) },
		func() error { return to.stream.Memset(dst, other) },
		func() error { return to.stream.Record(to.done) },
		func() error { return by.stream.Wait(e.done) },
		func() error { return by.stream.Wait(to.done) },
		func() error { return by.stream.CopyPeer(dst, src) },
		func() error { return by.stream.Record(by.done) },
		func() error { return to.stream.Wait(by.done) },
		func() error { return to.stream.CopyD2H(out, dst) },
		func() error { return to.stream.Synchronize(ctx) },
		func() error { return by.stream.Synchronize(ctx) },
	} {
		if err := call(); err != nil {
			return err
		}
	}
	for i := range in {
		if in[i] != out[i] {
			return &corruption{e.dev.name, to.dev.seenFrom(e.dev), by.dev.name, bytes, int64(i)}
		}
	}
	return nil
}

// rest waits for what was submitted: a context may have ended early, and memory in use is
// not freed.
func (e *end) rest() error {
	if e.stream == nil {
		return nil
	}
	return e.stream.Synchronize(context.Background())
}

// close frees what was made.
func (e *end) close() error {
	var errs []error
	if e.memory != nil {
		errs = append(errs, e.memory.Close())
	}
	for _, h := range []*HostBuffer{e.in, e.out} {
		if h != nil {
			errs = append(errs, h.Close())
		}
	}
	if e.done != nil {
		errs = append(errs, e.done.Close())
	}
	if e.stream != nil {
		errs = append(errs, e.stream.Close())
	}
	return errors.Join(errs...)
}
