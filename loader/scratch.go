package loader

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Scratch is a row outside of any batch, with memory of its own: a Dataset that is made of
// another one has that one's samples read into it. It is for one goroutine at a time. A
// Dataset keeps several, in a Local for example, since its Read is called by several
// goroutines at once.
//
//	inner := scratch.Begin(row)
//	err := ds.Read(ctx, index, inner)
//	if err == nil {
//		err = scratch.Written()
//	}
type Scratch struct {
	row Row
}

// NewScratch makes a Scratch for a sample of the fields. The error is that of NewLayout.
func NewScratch(fields []Field) (*Scratch, error) {
	layout, err := NewLayout(fields, 1)
	if err != nil {
		return nil, err
	}
	s := &Scratch{row: newRow(layout, 0)}
	s.row.mem = aligned(layout.Size())
	s.row.random = rand.New(&s.row.source)
	return s, nil
}

// scratchNumbers tells the random numbers of a Scratch from those of the row above it.
const scratchNumbers = 0x5c7a7c4

// Begin lends the row for another sample, with the epoch and the position of the row that
// the caller was lent for it. No field counts as written. Its random numbers depend on the
// same seed, epoch and position, but are others than those of row: what is drawn from both
// is independent. The row is borrowed until the next Begin.
func (s *Scratch) Begin(row *Row) *Row {
	s.row.seed, s.row.epoch = mix.Hash(row.seed, scratchNumbers), row.epoch
	s.row.move(0, row.Position())
	return &s.row
}

// Written is an *UnwrittenError if a field of the sample that was begun last was not
// written, with the means of the loader: in builds with the tag invariants also if it was
// written in part.
func (s *Scratch) Written() error { return s.row.unwritten() }

// Value borrows the elements that a sample has in the field of that name: of a ragged field
// as many as were told. It is for a row in which the sample has been written, such as that of
// a Scratch; else it is Column, which it is like in all other respects.
func Value[T dtype.Element](r *Row, field string) []T {
	all := Column[T](r, field)
	f := &r.layout.fields[r.next-1]
	if f.ragged < 0 {
		return all
	}
	n := int(max(r.lengths[f.ragged], 0)) * int(f.element) / f.DType.Size()
	return all[:n:n]
}

// CopyFrom copies a sample from another row to the fields of the same names, which must be
// declared alike: all fields of that row, which must be written.
func (r *Row) CopyFrom(from *Row) {
	for i := range from.layout.Written() {
		f := &from.layout.fields[i]
		to := r.Bytes(f.Name)
		if f.ragged >= 0 {
			r.lengths[r.layout.fields[r.next-1].ragged] = from.lengths[f.ragged]
		}
		copy(to, from.used(i))
	}
}

// Describe asks a dataset for its length and its fields, once each, and checks what New
// would check of them: that there is a dataset, that its functions are not nil, that it is
// not too long, and its fields. A length of 0 is allowed. It is for datasets that are made
// of others. The error joins every mistake, each an *OptionError.
func Describe(ds Dataset) (length int, fields []Field, err error) {
	if err := required("Dataset", ds, "a dataset"); err != nil {
		return 0, nil, err
	}
	if err := incomplete(ds); err != nil {
		return 0, nil, err
	}
	length = ds.Len()
	if length < 0 || int64(length) > maxSamples {
		err = &OptionError{Option: "Len", Value: length, Want: fmt.Sprintf("0 to %d samples", int64(maxSamples))}
	}
	layout, invalid := NewLayout(ds.Fields(), 1)
	if err := errors.Join(err, invalid); err != nil {
		return 0, nil, err
	}
	return length, layout.names(), nil
}
