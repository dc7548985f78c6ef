package loader

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Row is one sample's place in a batch, and the facts a sample may depend on.
// It is lent to Dataset.Read and to encode functions for the length of the call
// and belongs to one goroutine.
type Row struct {
	layout   *Layout
	mem      []byte // the batch's slot
	number   int    // among the batch's rows
	epoch    int
	position int64
	seed     uint64
	seeded   bool
	source   rand.PCG
	random   *rand.Rand
	asked    fieldSet // of this sample so far
}

// Bytes borrows the field's bytes in this row, in their final place: what is
// written here is what the batch holds. Before that they hold what an earlier
// batch left there, so every byte of every field must be written. A field that is
// never asked for, by Bytes, Elements, Write or one of the methods below, fails the
// sample with an *UnwrittenError. Bytes of it that are asked for and not written
// fail it only in builds with the tag invariants.
func (r *Row) Bytes(field int) []byte {
	r.check(field)
	r.asked.add(field)
	return r.bytes(field)
}

// check panics if there is no such field.
func (r *Row) check(field int) {
	if uint(field) >= uint(len(r.layout.fields)) {
		r.noField(field)
	}
}

func (r *Row) noField(field int) {
	names := make([]string, len(r.layout.fields))
	for i, f := range r.layout.fields {
		names[i] = fmt.Sprintf("%d %s", i, f.Name)
	}
	panic(fmt.Sprintf("loader: field %d asked for; the %d fields of a sample are %s", field, len(names), strings.Join(names, ", ")))
}

// bytes is Bytes, but the field does not count as asked for.
func (r *Row) bytes(field int) []byte {
	f := &r.layout.fields[field]
	at := f.Offset + int64(r.number)*f.RowBytes
	end := at + f.RowBytes
	return r.mem[at:end:end]
}

// Uint8s borrows a uint8 field's elements; see Elements.
func (r *Row) Uint8s(field int) []uint8 { return Elements[uint8](r, field) }

// Int32s borrows an int32 field's elements; see Elements.
func (r *Row) Int32s(field int) []int32 { return Elements[int32](r, field) }

// Int64s borrows an int64 field's elements; see Elements.
func (r *Row) Int64s(field int) []int64 { return Elements[int64](r, field) }

// Float32s borrows a float32 field's elements; see Elements.
func (r *Row) Float32s(field int) []float32 { return Elements[float32](r, field) }

// Float64s borrows a float64 field's elements; see Elements.
func (r *Row) Float64s(field int) []float64 { return Elements[float64](r, field) }

// Layout is the layout of the batch that the row belongs to.
func (r *Row) Layout() *Layout { return r.layout }

// Epoch is the epoch that the sample is read for, from 0.
func (r *Row) Epoch() int { return r.epoch }

// Position is the sample's place in the epoch's order over all ranks. Padding
// goes on counting past the last sample.
func (r *Row) Position() int64 { return r.position }

// Rand returns random numbers that depend on the loader's seed, the epoch and
// the position alone: not on the worker, the rank or what was read before. It is
// borrowed with the row.
func (r *Row) Rand() *rand.Rand {
	if !r.seeded {
		epoch, position := uint64(r.epoch), uint64(r.position)
		r.source.Seed(mix.Hash(r.seed, epoch, position, 0), mix.Hash(r.seed, epoch, position, 1))
		r.seeded = true
	}
	return r.random
}

// move points the row at another sample, or at the same one again.
func (r *Row) move(number int, position int64) {
	r.number, r.position, r.seeded = number, position, false
	r.asked.clear()
	if poisonRows {
		r.poison()
	}
}

// unwritten is why the row does not hold a sample although the user's code says
// that it does: a field of it was forgotten.
func (r *Row) unwritten() error {
	if field := r.layout.holding.firstNotIn(r.asked); field >= 0 {
		return &UnwrittenError{Field: r.layout.fields[field].Field}
	}
	if poisonRows {
		return r.poisoned()
	}
	return nil
}

// Elements borrows the field's elements in this row, in their final place. T
// must be the field's type; float16 and bfloat16 fields are seen as uint16.
// Another T is a mistake in the program, and panics.
func Elements[T dtype.Element](r *Row, field int) []T {
	r.check(field)
	f := &r.layout.fields[field]
	if !dtype.Holds[T](f.DType) {
		panic(fmt.Sprintf("loader: field %v seen as %T", f.Field, *new(T)))
	}
	return dtype.As[T](r.Bytes(field))
}

// Write copies a sample's value into a field. The value must have exactly the
// field's elements: another number of them is a *SizeError, so that a ragged
// dataset is found out rather than cut off.
func Write[T dtype.Element](r *Row, field int, value []T) error {
	to := Elements[T](r, field)
	if len(to) != len(value) {
		return &SizeError{Field: r.layout.fields[field].Field, Got: len(value), Want: len(to)}
	}
	copy(to, value)
	return nil
}
