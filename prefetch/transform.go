package prefetch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// A Transform is work that the device does on every batch between its upload and
// its delivery, on a stream of its own: what crosses the bus is small, uint8
// images, and what compute sees is ready, normalised float16.
//
// For a host consumer the same work runs in its Go version.
type Transform struct {
	// In are the fields that Apply was made for. New refuses a loader of others, so
	// that no shape is read as another of the same size. Nil means that Apply looks
	// at the fields that it gets.
	In []loader.Field
	// Out are the fields of the batches that are delivered.
	Out []loader.Field
	// Scratch are fields for intermediate results; see Fields.Scratch.
	Scratch []loader.Field
	// Apply submits to s the work that reads in and overwrites out, both of in.Len
	// rows and out in every field: one that it never asks for is a
	// *loader.UnwrittenError. It waits for nothing and keeps neither. The uploader
	// calls it, one batch after the other. An error ends the run and is delivered
	// behind the batches before it.
	Apply func(s *device.Stream, out, in Fields) error
}

func (t *Transform) validate(batch int) error {
	var errs []error
	if t.Apply == nil {
		errs = append(errs, errors.New("Transform.Apply is nil"))
	}
	if len(t.Out) == 0 {
		errs = append(errs, errors.New("Transform.Out has no field"))
	} else if _, err := loader.NewLayout(t.Out, batch); err != nil {
		errs = append(errs, fmt.Errorf("Transform.Out: %w", err))
	}
	if _, err := loader.NewLayout(t.Scratch, batch); len(t.Scratch) > 0 && err != nil {
		errs = append(errs, fmt.Errorf("Transform.Scratch: %w", err))
	}
	return errors.Join(errs...)
}

// fits says where the fields that a loader fills are not those that t takes.
func (t *Transform) fits(l *loader.Layout) error {
	if t.In == nil {
		return nil
	}
	var errs []error
	known := make([]bool, len(l.Fields()))
	for _, want := range t.In {
		i, ok := l.Lookup(want.Name)
		if !ok {
			errs = append(errs, fmt.Errorf("Transform.In has the field %v, the loader has none of that name", want))
			continue
		}
		known[i] = true
		if got := l.Fields()[i].Field; got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
			errs = append(errs, fmt.Errorf("Transform.In has the field %v, the loader fills %v", want, got))
		}
	}
	for i, got := range l.Fields() {
		if !known[i] {
			errs = append(errs, fmt.Errorf("the loader fills the field %v, Transform.In has none of that name", got.Field))
		}
	}
	return errors.Join(errs...)
}

// Fields are the fields of one batch where device work reads or writes them. They
// are borrowed for the call that gets them; it is a value and copying it is cheap.
type Fields struct {
	layout *loader.Layout
	memory device.View
	rows   int
	shapes [][]int
	at     Position
	seed   uint64
	// scratch is the transform's, nil elsewhere.
	scratch *scratch
	// asked notes which fields were asked for, where all are to be written: else nil.
	asked []bool
}

// Len is the number of rows.
func (f Fields) Len() int { return f.rows }

// Position says which batch it is.
func (f Fields) Position() Position { return f.at }

// Seed is the loader's seed, so that random operations are the same in every run.
func (f Fields) Seed() uint64 { return f.seed }

// Field returns the field of that name, and panics if there is none.
func (f Fields) Field(name string) Field {
	i, ok := f.layout.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q among %v", name, f.layout.Fields()))
	}
	if f.asked != nil {
		f.asked[i] = true
	}
	l := &f.layout.Fields()[i]
	return Field{Name: l.Name, DType: l.DType, Shape: f.shapes[i], View: f.span(i, 1)}
}

// span is the memory of n neighbouring fields, the first of them i.
func (f Fields) span(i, n int) device.View {
	first, last := &f.layout.Fields()[i], &f.layout.Fields()[i+n-1]
	return f.memory.Slice(first.Offset, last.Offset+int64(f.rows)*last.RowBytes-first.Offset)
}

// neighbours are n fields from number i on.
func (f Fields) neighbours(i, n int) []loader.FieldLayout {
	all := f.layout.Fields()
	if i < 0 || n < 0 || i > len(all)-n {
		panic(fmt.Sprintf("prefetch: no %d fields from number %d on among %v", n, i, all))
	}
	return all[i : i+n]
}

// Copy submits to s the copy of n neighbouring fields of src to n of f, the first of them
// src's field from and f's field to, as Transform.In and Transform.Out number them. A full
// batch takes one copy; of a short one the rows in use are copied, field by field. Fields
// of other sizes are an error; numbers that no fields have are a panic.
func (f Fields) Copy(s *device.Stream, to int, src Fields, from, n int) error {
	dst, all := f.neighbours(to, n), src.neighbours(from, n)
	if f.rows != src.rows {
		return fmt.Errorf("prefetch: Fields.Copy of %d rows to %d", src.rows, f.rows)
	}
	for i := range dst {
		if dst[i].RowBytes != all[i].RowBytes {
			return fmt.Errorf("prefetch: Fields.Copy of %v to %v, want fields of one size", all[i].Field, dst[i].Field)
		}
		if f.asked != nil {
			f.asked[to+i] = true
		}
	}
	if n > 0 && f.rows == f.layout.BatchSize() && f.rows == src.layout.BatchSize() {
		return s.CopyD2D(f.span(to, n), src.span(from, n))
	}
	for i := range n {
		if err := s.CopyD2D(f.span(to+i, 1), src.span(from+i, 1)); err != nil {
			return err
		}
	}
	return nil
}

// unwritten is why the user's code cannot have written the fields that it was to: it
// never asked for one. That would hold an earlier batch's.
func (f Fields) unwritten() error {
	for i, l := range f.layout.Fields() {
		if !f.asked[i] && f.rows > 0 && l.RowBytes > 0 {
			return &loader.UnwrittenError{Field: l.Field}
		}
	}
	return nil
}

// Scratch returns a field of Transform.Scratch, of Len rows, to Apply. Batches share
// its memory: it holds nothing before Apply's own work and nothing after.
func (f Fields) Scratch(name string) Field {
	if f.scratch == nil {
		panic(fmt.Sprintf("prefetch: no scratch field %q here", name))
	}
	of := Fields{layout: f.scratch.layout, memory: f.scratch.buffer.View(), rows: f.rows, shapes: f.scratch.shapes}.Field(name)
	of.Shape[0] = f.rows
	return of
}

// scratch is memory between the operations of a transform. There is one, since all
// that uses it is on one stream.
type scratch struct {
	layout *loader.Layout
	buffer *device.Buffer
	shapes [][]int
}

func (p *Prefetcher) newScratch() (*scratch, error) {
	b, err := p.hostDev.Alloc(p.scratch.Size())
	if err != nil {
		return nil, err
	}
	b.Describe(describeFields("the transform's scratch", p.scratch))
	return &scratch{layout: p.scratch, buffer: b, shapes: shapes(p.scratch)}, nil
}

// raws is how many raw buffers there are: one that is copied to while the
// transform reads the other.
const raws = 2

// transforming is a Transform at work.
type transforming struct {
	Transform
	p      *Prefetcher
	stream *device.Stream
	raws   []raw // none for a host consumer, whose host slots are raw
	turn   int
	shapes [][]int // of the batch going in
	asked  []bool  // which fields of the batch coming out Apply has asked for
	// scratch is nil without Transform.Scratch.
	scratch *scratch
	visit   visit
}

// A raw buffer is what copies fill and the transform reads.
type raw struct {
	buffer       *device.Buffer
	memory       device.View
	filled, read *device.Event
	used         bool // read has been recorded
}

func (p *Prefetcher) newTransforming(t Transform) (*transforming, error) {
	g := &transforming{Transform: t, p: p, shapes: shapes(p.layout), asked: make([]bool, len(p.out.Fields()))}
	var err error
	if g.stream, err = p.hostDev.NewStream(device.StreamOptions{Name: "transform"}); err != nil {
		return g, err
	}
	if p.scratch != nil {
		if g.scratch, err = p.newScratch(); err != nil {
			return g, err
		}
	}
	if p.dev == nil {
		return g, nil
	}
	for i := range raws {
		g.raws = append(g.raws, raw{})
		r := &g.raws[i]
		if r.buffer, err = p.dev.Alloc(p.stride * int64(p.options.BatchesPerCopy)); err != nil {
			return g, err
		}
		r.memory = r.buffer.View()
		r.buffer.Describe(describeFields(fmt.Sprintf("the transform's raw buffer %d", i), p.layout))
		if r.filled, err = p.dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("filled %d", i)}); err != nil {
			return g, err
		}
		if r.read, err = p.dev.NewEvent(device.EventOptions{Name: fmt.Sprintf("read %d", i)}); err != nil {
			return g, err
		}
	}
	return g, nil
}

// next is the raw buffer whose turn it is. Two in turn suffice without asking
// whether it is free: the copy waits for that on the device.
func (g *transforming) next() *raw {
	r := &g.raws[g.turn]
	g.turn = (g.turn + 1) % len(g.raws)
	return r
}

// apply submits the transform of the carrier's first batches, which lie in raw one
// behind the other, and counts in done how many it was done to.
func (g *transforming) apply(c *carrier, raw device.View, batches int, done *int) error {
	for i, s := range c.slots[:batches] {
		setRows(g.shapes, s.rows)
		in := Fields{
			layout: g.p.layout, rows: s.rows, shapes: g.shapes, at: s.position(), seed: g.p.loader.Options().Seed,
			memory: raw.Slice(int64(i)*g.p.stride, g.p.layout.Size()),
		}
		out := in
		out.layout, out.shapes, out.scratch = g.p.out, s.shapes, g.scratch
		out.memory = c.memory.Slice(int64(i)*stride(g.p.out), g.p.out.Size())
		clear(g.asked)
		out.asked = g.asked
		if err := g.poison(out); err != nil {
			return err
		}
		err := g.visit.of(in.at, func() error { return g.Apply(g.stream, out, in) })
		if err == nil {
			err = out.unwritten()
		}
		if err != nil {
			return &TransformError{Position: in.at, Err: err}
		}
		*done = i + 1
	}
	return nil
}

// rest waits until every raw buffer is read, and all that was made of it written:
// also where the batch was discarded and nobody waits for it.
func (g *transforming) rest(ctx context.Context) error {
	for _, r := range g.raws {
		if err := r.read.Synchronize(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (g *transforming) release() error {
	var errs []error
	for _, r := range g.raws {
		for _, e := range []*device.Event{r.filled, r.read} {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
		if r.buffer != nil {
			errs = append(errs, r.buffer.Close())
		}
	}
	if g.scratch != nil {
		errs = append(errs, g.scratch.buffer.Close())
	}
	if g.stream != nil {
		errs = append(errs, g.stream.Close())
	}
	return errors.Join(errs...)
}
