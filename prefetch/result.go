package prefetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/internal/slots"
	"github.com/leat-go/leat/loader"
)

// Output says what the steps of a Map give back. Fields is required.
type Output struct {
	// Fields are the result's fields for one row. A ragged one has the lengths of one of the
	// batch's, as Transform.Out has of the loader's.
	Fields []loader.Field
	// Slots is the number of results under way: computed, downloaded or in the
	// user's hands. 0 means 3 more than the compute streams.
	Slots int
	// AsFinished yields results as they are done, rather than in order, where
	// several compute streams finish in another one. The position is then behind
	// the first results of which none is missing: after a loop that was left, the
	// ones yielded beyond it come again.
	AsFinished bool
}

func (o Output) validate(step Step, batch int) error {
	var c checks
	c.that(step != nil, "step", "nil", "a function")
	c.count("Output.Slots", o.Slots)
	c.fields("Output.Fields", o.Fields, batch)
	return c.err()
}

func (o Output) equal(as Output) bool {
	return o.Slots == as.Slots && o.AsFinished == as.AsFinished && slices.EqualFunc(o.Fields, as.Fields, loader.Field.Equal)
}

// cloneFields is a copy that shares no shape: the caller may go on to change its own.
func cloneFields(fields []loader.Field) []loader.Field {
	fields = slices.Clone(fields)
	for i, f := range fields {
		fields[i] = f.Clone()
	}
	return fields
}

// A Result is the lease of a result's pinned memory, valid until the loop body
// ends. It is a small value to pass by value.
type Result struct {
	r          *result
	generation uint64
}

// A result is what a step writes: one more slot, which compute writes and the download's
// stream reads into pinned memory.
type result struct {
	slot *slots.Slot
	like likes // what its fields have of the batch's
	host *device.HostBuffer

	// The batch whose result is in it.
	at         Position
	valid      int
	extent     *extent
	asked      []bool    // which fields the step has asked for
	number     int64     // of the step in its Map
	sent       time.Time // when its download was submitted, if anybody is told
	after      loader.Cursor
	generation uint64
	leased     bool
}

// newResult makes a result on dev. What it could make before an error is in it, for
// release.
func newResult(dev *device.Device, l *loader.Layout, like likes, id int, w *device.Witness) (*result, error) {
	r := &result{like: like, extent: newExtent(l), asked: make([]bool, len(l.Fields()))}
	var err error
	if r.slot, err = slots.New(dev, slots.Options{ID: id, Bytes: l.Size(), Reads: 1, Filled: device.EventOptions{Name: "written"},
		Read: device.EventOptions{Name: "fetched", BlockingSync: true, Witness: w}}); err != nil {
		return r, err
	}
	r.slot.Describe(describeFields(fmt.Sprintf("result %d", id), l))
	if r.host, err = dev.AllocHost(l.Size(), device.HostOptions{}); err != nil {
		return r, err
	}
	r.host.Describe(describeFields(fmt.Sprintf("the host's result %d", id), l))
	return r, nil
}

func (r *result) release() error {
	err := r.slot.Close()
	if r.host != nil {
		err = errors.Join(err, r.host.Close())
	}
	return err
}

// fetch submits the download of what compute's work so far has written.
func (r *result) fetch(compute, download *device.Stream) error {
	if err := r.slot.EndWrite(compute); err != nil {
		return err
	}
	if err := r.slot.BeginRead(download); err != nil {
		return err
	}
	err := r.extent.copy(func(offset, bytes int64) error {
		return download.CopyD2H(r.host.Bytes()[offset:offset+bytes], r.slot.Memory.Slice(offset, bytes))
	})
	if err != nil {
		return err
	}
	return r.slot.EndRead(download)
}

// arrived waits on the host until the download is done. Then the result is the host's:
// nothing on the device need be waited for before it is written again.
func (r *result) arrived(w *device.Witness) error {
	if err := r.slot.Rest(context.Background()); err != nil {
		return err
	}
	r.slot.Renew()
	return errors.Join(w.HostAtRest(r.host.Bytes()), w.AtRest(r.slot.Memory))
}

// fields is where a step writes.
func (r *result) fields(seed uint64) Fields {
	return Fields{extent: r.extent, memory: r.slot.Memory, at: r.at, seed: seed, asked: r.asked}
}

// set takes b as the batch whose result this lap is.
func (r *result) set(b Batch, number int64) {
	w := b.window
	r.at, r.valid, r.after, r.number = w.position(), w.batch.Valid, w.batch.After, number
	r.extent.follow(w.out, r.like)
	clear(r.asked)
}

func (r Result) use(method string) *result {
	if r.r == nil {
		panic("prefetch: Result." + method + " of the zero Result")
	}
	if !r.r.leased || r.r.generation != r.generation {
		panic("prefetch: Result." + method + " after its loop body has ended")
	}
	return r.r
}

// Len is the number of rows.
func (r Result) Len() int { return r.use("Len").extent.rows }

// Valid is the number of rows that are not padding.
func (r Result) Valid() int { return r.use("Valid").valid }

// Position says which batch it is the result of.
func (r Result) Position() Position { return r.use("Position").at }

// Field returns a field of the result, in pinned host memory. It panics if there is
// none of that name.
func (r Result) Field(name string) Field {
	f, ok := r.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q in a result of %v", name, r.r.extent.layout.Fields()))
	}
	return f
}

// Lookup returns the field of that name, if there is one.
func (r Result) Lookup(name string) (Field, bool) {
	x := r.use("Field")
	i, ok := x.extent.layout.Lookup(name)
	if !ok {
		return Field{}, false
	}
	return x.extent.field(i, device.View{}, x.host.Bytes()), true
}
