package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A Field is one field of a batch: Len rows of equal shape, packed, little-endian.
// It borrows the batch's memory and is valid as long as its Batch.
type Field struct {
	Name  string
	DType dtype.Type
	// Shape has the number of rows first. It is borrowed too.
	Shape []int
	// View is the field in device memory. Without a device it is empty.
	View device.View
	// Bytes is the field in pinned memory. With a device it is nil.
	Bytes []byte
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

func newScratch(dev *device.Device, l *loader.Layout) (*scratch, error) {
	b, err := dev.Alloc(l.Size())
	if err != nil {
		return nil, err
	}
	b.Describe(describeFields("the transform's scratch", l))
	return &scratch{layout: l, buffer: b, shapes: newShapes(l)}, nil
}
