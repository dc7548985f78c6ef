package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// A Field is one field of a batch: Len rows of equal shape, packed, little-endian.
// It borrows the batch's memory and is valid as long as its Batch. The rows of a ragged field
// are as long as this batch's are, or one behind the other where its samples are packed;
// what Shape says is all that there is of it.
type Field struct {
	Name  string
	DType dtype.Type
	// Shape has the number of rows first, or the length of all where samples are packed. It
	// is borrowed too.
	Shape []int
	// View is the field in device memory. Without a device it is empty.
	View device.View
	// Bytes is the field in pinned memory. With a device it is nil.
	Bytes []byte
}

// Fields are the fields of one batch where device work reads or writes them. They
// are borrowed for the call that gets them; it is a value and copying it is cheap.
type Fields struct {
	extent *extent
	memory device.View
	at     Position
	seed   uint64
	// scratch is the transform's, nil elsewhere.
	scratch *scratch
	// asked notes which fields were asked for, where all are to be written: else nil.
	asked []bool
}

// Len is the number of rows.
func (f Fields) Len() int { return f.extent.rows }

// Position says which batch it is.
func (f Fields) Position() Position { return f.at }

// Seed is the loader's seed, so that random operations are the same in every run.
func (f Fields) Seed() uint64 { return f.seed }

// Field returns the field of that name, and panics if there is none.
func (f Fields) Field(name string) Field {
	i, ok := f.extent.layout.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("prefetch: no field %q among %v", name, f.extent.layout.Fields()))
	}
	if f.asked != nil {
		f.asked[i] = true
	}
	return f.extent.field(i, f.memory, nil)
}

// span is the memory of n neighbouring fields, the first of them i, which lie one behind
// the other if none of them is ragged.
func (f Fields) span(i, n int) device.View {
	first, _ := f.extent.span(i)
	last, bytes := f.extent.span(i + n - 1)
	return f.memory.Slice(first, last+bytes-first)
}

// neighbours are n fields from number i on.
func (f Fields) neighbours(i, n int) []loader.FieldLayout {
	all := f.extent.layout.Fields()
	if i < 0 || n < 0 || i > len(all)-n {
		panic(fmt.Sprintf("prefetch: no %d fields from number %d on among %v", n, i, all))
	}
	return all[i : i+n]
}

// Copy submits to s the copy of n neighbouring fields of src to n of f, the first of them
// src's field from and f's field to, as Transform.In and Transform.Out number them. A full
// batch takes one copy; of a short one, and of ragged fields, what is in use is copied,
// field by field. Fields of other sizes are an error; numbers that no fields have are a
// panic.
func (f Fields) Copy(s *device.Stream, to int, src Fields, from, n int) error {
	dst, all := f.neighbours(to, n), src.neighbours(from, n)
	if f.Len() != src.Len() {
		return fmt.Errorf("prefetch: Fields.Copy of %d rows to %d", src.Len(), f.Len())
	}
	fixed := true
	for i := range dst {
		if f.span(to+i, 1).Size() != src.span(from+i, 1).Size() || dst[i].RowBytes != all[i].RowBytes {
			return fmt.Errorf("prefetch: Fields.Copy of %v to %v, want fields of one size", all[i].Field, dst[i].Field)
		}
		fixed = fixed && dst[i].Fixed() && all[i].Fixed()
		if f.asked != nil {
			f.asked[to+i] = true
		}
	}
	if n > 0 && fixed && f.extent.full() && src.extent.full() {
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
	for i, l := range f.extent.layout.Written() {
		if _, bytes := f.extent.span(i); bytes > 0 && !f.asked[i] {
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
	return Fields{extent: f.scratch.extent, memory: f.scratch.buffer.View()}.Field(name)
}

// copyAdded submits to s the copies of what the loader adds for ragged fields, from a batch
// to what is computed of it.
func (f Fields) copyAdded(s *device.Stream, from func(field int) device.View, like likes) error {
	all := f.extent.layout.Fields()
	for i := len(f.extent.layout.Written()); i < len(all); i++ {
		to := f.span(i, 1)
		if to.Size() == 0 {
			continue
		}
		if err := s.CopyD2D(to, from(like[i])); err != nil {
			return err
		}
	}
	return nil
}

// scratch is memory between the operations of a transform. There is one, since all
// that uses it is on one stream.
type scratch struct {
	buffer *device.Buffer
	extent *extent
}

func newScratch(dev *device.Device, l *loader.Layout) (*scratch, error) {
	b, err := dev.Alloc(l.Size())
	if err != nil {
		return nil, err
	}
	b.Describe(describeFields("the transform's scratch", l))
	return &scratch{buffer: b, extent: newExtent(l)}, nil
}
