package prefetch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A Batch is the lease of one slot: a small value to pass by value. It is valid
// until Release, and in a range until the loop body ends. Using it afterwards
// panics with the slot's history, because its memory may hold another batch.
//
// Several goroutines may read a Batch; one of them releases it.
type Batch struct {
	p          *Prefetcher
	slot       *slot
	generation uint64
}

// Position says which batch of which epoch a Batch is.
type Position struct {
	// Epoch counts from 0.
	Epoch int
	// Batch counts from 0 in each epoch.
	Batch int
	// Sample is the position of this rank's first sample in the epoch's order, and not
	// its index in the dataset.
	Sample int64
}

// A Field is one field of a batch: Len rows of equal shape, packed, little-endian.
// It borrows the slot's memory and is valid as long as its Batch.
type Field struct {
	Name  string
	DType dtype.Type
	// Shape has the number of rows first. It is borrowed too.
	Shape []int
	// View is the field in device memory. Without a device it is empty.
	View device.View
	// Bytes is the field in the pinned slot. With a device it is nil.
	Bytes []byte
}

// use is the slot, if b is still valid (P4).
func (b Batch) use(method string) *slot {
	if b.slot == nil {
		panic("prefetch: Batch." + method + " of the zero Batch")
	}
	if !b.slot.lentTo(b.generation) {
		b.stale(method)
	}
	return b.slot
}

func (b Batch) stale(method string) {
	panic(fmt.Sprintf("prefetch: Batch.%s after its release (slot %d)\n%s", method, b.slot.id, &b.slot.history))
}

// Len is the number of rows, at most the batch size.
func (b Batch) Len() int { return b.use("Len").rows }

// Valid is the number of rows that are samples of this epoch's own: less than Len
// only where the last batch was padded, and then the padding stands behind them.
func (b Batch) Valid() int { return b.use("Valid").batch.Valid }

// Position says which batch of which epoch it is.
func (b Batch) Position() Position {
	return b.use("Position").position()
}

func (s *slot) position() Position {
	return Position{Epoch: s.batch.Epoch, Batch: s.batch.Batch, Sample: s.batch.Position}
}

// Substituted lists the positions whose samples failed and were replaced. It is
// borrowed.
func (b Batch) Substituted() []loader.Substitution { return b.use("Substituted").batch.Substituted }

// Stream is the compute stream that the batch was given to: the one that waits for its
// copy, and to which the batch's work is submitted. With Options.ComputeStreams it is
// not always the stream that New was given. It is nil without a device.
func (b Batch) Stream() *device.Stream { return b.use("Stream").stream }

// Field returns the field of that name. It panics if the layout has none, since
// the names are fixed when the loader is made.
func (b Batch) Field(name string) Field {
	s := b.use("Field")
	i, ok := b.p.out.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q in a batch of %v", name, b.p.out.Fields()))
	}
	return b.p.field(s, i)
}

// Fields returns all fields in the layout's order. It allocates.
func (b Batch) Fields() []Field {
	s := b.use("Fields")
	fields := make([]Field, len(s.shapes))
	for i := range fields {
		fields[i] = b.p.field(s, i)
	}
	return fields
}

func (p *Prefetcher) field(s *slot, i int) Field {
	l := &p.out.Fields()[i]
	f := Field{Name: l.Name, DType: l.DType, Shape: s.shapes[i]}
	n := int64(s.rows) * l.RowBytes
	if b := s.host; b != nil {
		f.Bytes = b[l.Offset : l.Offset+n : l.Offset+n]
	} else {
		f.View = s.memory.Slice(l.Offset, n)
	}
	return f
}

// UsedOn makes work submitted to stream from now on wait for the batch's copy, and
// the next copy into its memory wait for what was submitted to stream until Release.
// From Release on the stream may be closed. The batch's own Stream needs no UsedOn.
//
// A stream of another device will do where the two are peers (device.Device.PeerOf).
// Other ones, closed ones, and more than Options.MaxStreams allows, are refused with a
// *StreamError. UsedOn may be called while another goroutine releases the batch: it
// takes place before that, or panics as every method of a released batch does.
func (b Batch) UsedOn(stream *device.Stream) error {
	s := b.use("UsedOn")
	if b.p.dev == nil {
		return errors.New("prefetch: UsedOn: the batch is in host memory, and no stream orders its reuse")
	}
	s.carrier.mu.Lock()
	defer s.carrier.mu.Unlock()
	b.use("UsedOn") // again: a Release from here on waits for the lock before it ends the uses
	if err := b.p.usedOn(s, stream); err != nil {
		if err == ErrMaxStreams {
			err = fmt.Errorf("%w (%d)", err, b.p.options.MaxStreams)
		}
		e := &StreamError{Position: s.position(), Err: err}
		if stream != nil {
			e.Stream = stream.Name()
		}
		return e
	}
	return nil
}

// usedOn is UsedOn; the caller holds the carrier's lock.
func (p *Prefetcher) usedOn(s *slot, stream *device.Stream) error {
	switch {
	case stream == nil:
		return errNoStream
	case stream == s.stream:
		return nil
	case slices.Contains(p.compute, stream):
		return s.carrier.computeOn(stream)
	case !p.dev.PeerOf(stream.Device()):
		return &device.Error{Op: "UsedOn", Device: p.dev.Name(), Err: device.ErrUnsupported,
			Hint: stream.Device().Name() + " is no peer of it: copy through host memory"}
	}
	return s.carrier.useOn(s, stream)
}

// Release ends the lease. The streams that use the batch go on: the slot is
// overwritten when they have passed the point at which Release was called. It
// panics if the lease has ended already; of two calls at once one does.
func (b Batch) Release() {
	b.use("Release")
	if !b.slot.giveBack(b.generation) {
		b.stale("Release")
	}
	b.p.released(b.slot)
}

// end is Release for a loop body that may have released the batch itself.
func (b Batch) end() {
	if b.slot.giveBack(b.generation) {
		b.p.released(b.slot)
	}
}
