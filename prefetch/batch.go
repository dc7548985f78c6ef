package prefetch

import (
	"errors"
	"fmt"

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
	// Sample is the position of this rank's first sample in the epoch's order.
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
	if b.slot.generation.Load() != b.generation || state(b.slot.state.Load()) != leased {
		panic(fmt.Sprintf("prefetch: Batch.%s after its release (slot %d)\n%s", method, b.slot.id, &b.slot.history))
	}
	return b.slot
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

// Stream is the compute stream that the batch was given to, on which it may be used
// without more ado; nil without a device.
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
// The batch's own Stream needs no UsedOn. At most Options.MaxStreams streams can use
// what was uploaded together, the compute streams that it may go to included.
func (b Batch) UsedOn(stream *device.Stream) error {
	s := b.use("UsedOn")
	if b.p.dev == nil {
		return errors.New("prefetch: UsedOn: the batch is in host memory, and no stream orders its reuse")
	}
	var expected []*device.Stream
	if len(s.carrier.slots) > 1 {
		expected = b.p.compute // batches uploaded with this one go to them
	}
	return s.carrier.handOver(stream, expected)
}

// Release ends the lease. The streams that use the batch go on: the slot is
// overwritten when they have passed the point at which Release was called. It
// panics if the lease has ended already.
func (b Batch) Release() {
	b.use("Release")
	b.p.release(b.slot)
}

// end is Release for a loop body that may have released the batch itself.
func (b Batch) end() {
	if b.slot.generation.Load() == b.generation && state(b.slot.state.Load()) == leased {
		b.p.release(b.slot)
	}
}
