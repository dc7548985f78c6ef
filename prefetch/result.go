package prefetch

import (
	"errors"
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// Output says what the steps of a Map give back. Fields is required.
type Output struct {
	// Fields are the result's fields for one row.
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

func (o Output) validate(batch int) error {
	var errs []error
	if o.Slots < 0 || o.Slots > most {
		errs = append(errs, fmt.Errorf("Output.Slots is %d, want 0 to %d", o.Slots, most))
	}
	if len(o.Fields) == 0 {
		errs = append(errs, errors.New("Output.Fields has no field"))
	} else if _, err := loader.NewLayout(o.Fields, batch); err != nil {
		errs = append(errs, fmt.Errorf("Output.Fields: %w", err))
	}
	return errors.Join(errs...)
}

// A Result is the lease of a result's pinned memory, valid until the loop body
// ends. It is a small value to pass by value.
type Result struct {
	r          *result
	generation uint64
}

// A result is a place for what a step writes: device memory, and the pinned memory
// that it is downloaded to.
type result struct {
	layout           *loader.Layout
	buffer           *device.Buffer
	host             *device.HostBuffer
	written, fetched *device.Event

	// The batch whose result is in it.
	at          Position
	rows, valid int
	shapes      [][]int
	asked       []bool // which fields the step has asked for
	number      int64  // of the step in its Map
	after       loader.Cursor
	generation  uint64
	leased      bool
}

func newResult(dev *device.Device, l *loader.Layout, id int, w *device.Witness) (*result, error) {
	r := &result{layout: l, shapes: shapes(l), asked: make([]bool, len(l.Fields()))}
	var err error
	if r.buffer, err = dev.Alloc(l.Size()); err != nil {
		return r, err
	}
	if r.host, err = dev.AllocHost(l.Size(), device.HostOptions{}); err != nil {
		return r, err
	}
	r.buffer.Describe(describeFields(fmt.Sprintf("result %d", id), l))
	r.host.Describe(describeFields(fmt.Sprintf("the host's result %d", id), l))
	if r.written, err = dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("written %d", id)}); err != nil {
		return r, err
	}
	r.fetched, err = dev.NewEvent(device.EventOptions{BlockingSync: true, Name: fmt.Sprintf("fetched %d", id), Witness: w})
	return r, err
}

func (r *result) release() error {
	var errs []error
	for _, e := range []*device.Event{r.written, r.fetched} {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if r.host != nil {
		errs = append(errs, r.host.Close())
	}
	if r.buffer != nil {
		errs = append(errs, r.buffer.Close())
	}
	return errors.Join(errs...)
}

// fields is where a step writes.
func (r *result) fields(seed uint64) Fields {
	return Fields{layout: r.layout, memory: r.buffer.View(), rows: r.rows, shapes: r.shapes, at: r.at, seed: seed, asked: r.asked}
}

// hold takes b as the batch whose result this lap is.
func (r *result) hold(b Batch, number int64) {
	s := b.slot
	r.at, r.rows, r.valid, r.after, r.number = s.position(), s.rows, s.batch.Valid, s.batch.After, number
	setRows(r.shapes, r.rows)
	clear(r.asked)
}

// copyBack submits the download, of the rows that there are.
func (r *result) copyBack(download *device.Stream) error {
	if r.rows == r.layout.BatchSize() {
		return download.CopyD2H(r.host.Bytes(), r.buffer.View())
	}
	for _, f := range r.layout.Fields() {
		n := int64(r.rows) * f.RowBytes
		if err := download.CopyD2H(r.host.Bytes()[f.Offset:f.Offset+n], r.buffer.View().Slice(f.Offset, n)); err != nil {
			return err
		}
	}
	return nil
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
func (r Result) Len() int { return r.use("Len").rows }

// Valid is the number of rows that are not padding.
func (r Result) Valid() int { return r.use("Valid").valid }

// Position says which batch it is the result of.
func (r Result) Position() Position { return r.use("Position").at }

// Field returns a field of the result, in pinned host memory. It panics if there is
// none of that name.
func (r Result) Field(name string) Field {
	x := r.use("Field")
	i, ok := x.layout.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q in a result of %v", name, x.layout.Fields()))
	}
	l := &x.layout.Fields()[i]
	n := int64(x.rows) * l.RowBytes
	return Field{Name: l.Name, DType: l.DType, Shape: x.shapes[i], Bytes: x.host.Bytes()[l.Offset : l.Offset+n : l.Offset+n]}
}
