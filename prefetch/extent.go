package prefetch

import (
	"fmt"

	"github.com/leat-go/leat/device"
	"github.com/leat-go/leat/loader"
)

// A ragged field has its place in a slot at the same byte in every batch, with room for the
// longest rows that there may be, behind all fields of one size. So all sizes are known
// before the first batch, and a full batch travels in one copy for what is of one size and
// one more for each ragged field, of the bytes in use. To move the ragged fields together in
// the pinned buffer as well would save those copies, 2 µs each, and would have every offset
// differ from batch to batch, in the reports of checkers too. Batches in neighbouring buffers
// have gaps between what they use, and don't travel in one copy.
//
// Of what a Transform or a step computes, a ragged field has the lengths of one that goes in.
// Lengths that a device works out are nothing that the host knows when it hands a batch over.

// An extent is how much of a layout one batch takes: its rows, and the shape of each field.
// Only ragged fields differ in more than the number of rows. It is made once for each place
// that holds a batch, and set for each batch.
type extent struct {
	layout  *loader.Layout
	rows    int
	lengths []int   // by field, as loader.Filled.Extent tells them
	shapes  [][]int // by field
}

func newExtent(l *loader.Layout) *extent {
	e := &extent{layout: l, lengths: make([]int, len(l.Fields())), shapes: make([][]int, len(l.Fields()))}
	for i, f := range l.Fields() {
		e.shapes[i] = make([]int, 0, len(f.Shape)+1)
	}
	return e
}

// set is for a batch as the loader filled it.
func (e *extent) set(f *loader.Filled) {
	e.rows = f.N
	for i := range e.lengths {
		e.lengths[i] = f.Extent(i)
	}
	e.reshape()
}

// follow is for what is computed of a batch: as many rows, and ragged fields as long as
// those that they have their lengths of.
func (e *extent) follow(of *extent, like likes) {
	e.rows = of.rows
	for i, source := range like {
		if source >= 0 {
			e.lengths[i] = of.lengths[source]
		}
	}
	e.reshape()
}

func (e *extent) reshape() {
	for i := range e.shapes {
		e.shapes[i] = e.layout.Fields()[i].AppendShape(e.shapes[i][:0], e.rows, e.lengths[i])
	}
}

// full reports whether the batch has all the rows that there may be.
func (e *extent) full() bool { return e.rows == e.layout.BatchSize() }

// span is the first of the bytes of a field, and how many there are.
func (e *extent) span(field int) (offset, bytes int64) {
	f := &e.layout.Fields()[field]
	return f.Offset, f.Bytes(e.rows, e.lengths[field])
}

// field is a field in one of the two memories that a batch may be in.
func (e *extent) field(i int, memory device.View, host []byte) Field {
	l := &e.layout.Fields()[i]
	f := Field{Name: l.Name, DType: l.DType, Shape: e.shapes[i]}
	offset, bytes := e.span(i)
	if host != nil {
		f.Bytes = host[offset : offset+bytes : offset+bytes]
	} else {
		f.View = memory.Slice(offset, bytes)
	}
	return f
}

// copy copies the bytes that the batch has, of all its fields, by copy. Where it is full,
// all that is not ragged goes in one call, else field by field, so that no stale tail
// travels. Of ragged fields each goes by itself.
func (e *extent) copy(copy func(offset, bytes int64) error) error {
	l := e.layout
	if e.full() && (l.Fixed() > 0 || l.Size() == 0) {
		if err := copy(0, l.Fixed()); err != nil {
			return err
		}
	}
	for i := range l.Fields() {
		f := &l.Fields()[i]
		if e.full() && f.Fixed() {
			continue
		}
		offset, bytes := e.span(i)
		if bytes == 0 && !f.Fixed() {
			continue
		}
		if err := copy(offset, bytes); err != nil {
			return err
		}
	}
	return nil
}

// bytes is how many bytes copy copies.
func (e *extent) bytes() (n int64) {
	_ = e.copy(func(_, bytes int64) error {
		n += bytes
		return nil
	})
	return n
}

// likes are, for the fields of one layout, the numbers of the fields of another whose
// lengths they have: -1 for what has none. A field that is added for a ragged one is as the
// one that is added there for the same purpose, which is copied to it.
type likes []int

// liken finds the fields of an input whose lengths those of an output have. Its error joins
// an *OptionError for each that has none.
func liken(option string, out, in *loader.Layout) (likes, error) {
	like := make(likes, len(out.Fields()))
	var c checks
	for i := range like {
		like[i] = -1
		if f := &out.Fields()[i]; f.Of >= 0 {
			like[i] = likened(&c, option, out, in, i)
		}
	}
	return like, c.err()
}

// likened is the input of field i, which is ragged or added for one that is.
func likened(c *checks, option string, out, in *loader.Layout, i int) int {
	f := &out.Fields()[i]
	owner := &out.Fields()[f.Of]
	name := owner.Name
	if owner.Ragged.Like != "" {
		name = owner.Ragged.Like
	}
	source, ok := in.Lookup(name)
	if !ok || in.Fields()[source].Of != source {
		if f == owner {
			c.that(false, option, owner.Field, "lengths of a ragged field of its input, by its name or Ragged.Like")
		}
		return -1
	}
	from := &in.Fields()[source]
	if f == owner {
		c.that(f.Shape[0] == from.Shape[0] && f.Packed() == from.Packed(), option, owner.Field,
			fmt.Sprintf("the maximum of %v, whose lengths it has, and Offsets only if that has them", from.Field))
		c.that(f.Ragged.Multiple == 0 || f.Ragged.Multiple == max(from.Ragged.Multiple, 1), option, f.Ragged.Multiple,
			fmt.Sprintf("a Multiple of 0, or %d, that of %v", max(from.Ragged.Multiple, 1), from.Field))
		return source
	}
	named := added(f, owner, from)
	at, ok := in.Lookup(named)
	if !ok || named == "" {
		c.that(false, option, f.Name, "a name that is given to "+from.Field.String()+" too: what the loader adds for it is copied")
		return -1
	}
	return at
}

// added is the name of what from has in the place of f, which was added for owner.
func added(f, owner, from *loader.FieldLayout) string {
	switch f.Name {
	case owner.Ragged.Length:
		return from.Ragged.Length
	case owner.Ragged.Mask:
		return from.Ragged.Mask
	}
	return from.Ragged.Offsets
}
