package loader

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/leat-go/leat/loader/internal/mix"
)

// Scratch is a row outside of any batch, with memory of its own: a Dataset that is made of
// another one has that one's samples read into it. It is for one goroutine at a time. A
// Dataset keeps several, in a sync.Pool for example, since its Read is called by several
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
	s := &Scratch{row: Row{layout: layout, mem: aligned(layout.Size()), asked: newFieldSet(len(fields))}}
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
	s.row.move(0, row.position)
	return &s.row
}

// Written is an *UnwrittenError if a field of the sample that was begun last was not
// written, with the means of the loader: in builds with the tag invariants also if it was
// written in part.
func (s *Scratch) Written() error { return s.row.unwritten() }

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
