package loader

import (
	"fmt"
	"math/rand/v2"
	"unsafe"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/internal/mix"
)

// Row is one sample's place in a batch, with what a sample may depend on. Write copies a
// value into a field of it; Column and Bytes lend the field's memory, so that the value can
// be made where it belongs.
//
// A Row is lent to Dataset.Read and to encode functions until they return, and is for one
// goroutine.
type Row struct {
	layout   *Layout
	mem      []byte // the batch's slot
	number   int    // among the batch's rows
	next     int    // the field that is looked at first: the one behind the last found
	epoch    int
	position int64
	seed     uint64
	seeded   bool
	placed   bool // whether the sample has been told its position or what follows from it
	source   rand.PCG
	random   *rand.Rand
	asked    fieldSet // of this sample so far
	plain    bool     // a sample needs no look at anything but asked.first
	lengths  []int32  // of this sample's ragged fields, unknown until they are told
	locals   locals
}

// newRow makes a row of a batch.
func newRow(l *Layout, seed uint64) Row {
	r := Row{layout: l, seed: seed, asked: newFieldSet(len(l.fields)), lengths: newLengths(l)}
	r.plain = r.asked.more == nil && r.lengths == nil && !poisonRows
	return r
}

// Write copies a sample's value into the field of that name. A slice must have exactly
// as many elements as the field or, if that is ragged, at most as many; then it tells the
// sample's length too. T must be the field's type; float16 and bfloat16 are written as
// uint16. Otherwise nothing is written, and the error is a *SizeError or a *FieldError:
// samples of other lengths are reported and not cut off.
//
//	err := loader.Write(row, "image", pixels...)
//	err := loader.Write(row, "label", int64(7))
//	err := loader.Write(row, "tokens", tokens...)
func Write[T dtype.Element](r *Row, field string, value ...T) error {
	i := r.find(field)
	if i < 0 || !dtype.Holds[T](r.layout.fields[i].DType) {
		return misnamed[T](r.layout, field)
	}
	from, to := dtype.Bytes(value), r.bytes(i)
	if len(from) != len(to) || len(r.lengths) > 0 {
		if err := r.fits(i, len(value)); err != nil {
			return err
		}
	}
	r.asked.add(i)
	copy(to, from)
	return nil
}

// fits is why a value of so many elements can't be the field's in this row. Of a ragged
// field it notes the length.
func (r *Row) fits(field, elements int) error {
	f := &r.layout.fields[field]
	if f.ragged >= 0 {
		n, ok := f.lengthOf(elements)
		if ok {
			r.lengths[f.ragged] = int32(n)
			return nil
		}
	} else if elements == f.elements() {
		return nil
	}
	return &SizeError{Field: f.Field, Got: elements, Want: f.elements()}
}

// elements is how many a row has, of a ragged field the longest.
func (f *FieldLayout) elements() int { return int(f.RowBytes) / f.DType.Size() }

// Column borrows the elements of the field of that name in this row, in their final
// place, under the rules of Bytes: of a ragged field all that a sample may have, of which
// Row.SetLen says how much counts. T must be the field's type; float16 and bfloat16
// fields are seen as uint16. Another name or T is a mistake in the program: Column panics
// with a *FieldError, which fails the sample.
func Column[T dtype.Element](r *Row, field string) []T {
	i := r.find(field)
	if i < 0 || !dtype.Holds[T](r.layout.fields[i].DType) {
		panic(misnamed[T](r.layout, field))
	}
	r.asked.add(i)
	return dtype.As[T](r.bytes(i))
}

// Bytes borrows the bytes of the field of that name in this row, in their final place:
// what is written here is what the batch holds. Before that they hold what an earlier
// batch left there, so every byte of every field must be written. The built-in copy does
// not report a value that is too short or too long for the field; Write does.
//
// Of a ragged field it lends all that a sample may have; SetLen says how much of it is to
// count, and only that must be written. A sample that never says it fails, with an
// *UnwrittenError.
//
// A field that is never asked for, by Write, Column or Bytes, fails the sample with an
// *UnwrittenError. Bytes of it that are asked for and not written fail it only in builds
// with the tag invariants. A name that no field has panics with a *FieldError.
func (r *Row) Bytes(field string) []byte {
	i := r.find(field)
	if i < 0 {
		panic(&FieldError{Name: field, Fields: r.layout.names()})
	}
	r.asked.add(i)
	return r.bytes(i)
}

// find is the field of that name, or -1. Fields that are asked for in their order, by the
// constants that name them, cost no comparison of bytes.
func (r *Row) find(name string) int {
	if i := r.next; i < r.layout.written && same(r.layout.fields[i].Name, name) {
		r.next = i + 1
		return i
	}
	return r.search(name)
}

// same reports whether two strings are one in memory. If not they may be equal.
func same(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// search is find for all other names. It is no part of the code that every value runs
// through, which grows faster than one would think.
//
//go:noinline
func (r *Row) search(name string) int {
	i, ok := r.layout.Lookup(name)
	if !ok || i >= r.layout.written {
		return -1
	}
	r.next = i + 1
	return i
}

// bytes are those of a field by its number; it does not count as asked for.
func (r *Row) bytes(field int) []byte {
	f := &r.layout.fields[field]
	at := f.Offset + int64(r.number)*f.RowBytes
	end := at + f.RowBytes
	return r.mem[at:end:end]
}

// misnamed is why field can't be seen as T.
func misnamed[T dtype.Element](l *Layout, field string) error {
	return &FieldError{Name: field, Type: fmt.Sprintf("%T", *new(T)), Fields: l.names()}
}

// Layout says what fields the row has. They are those of the batch, but the layout is that
// of one sample where samples are read before they get to their batch: into a Scratch, and
// under Options.ReadTimeout and Options.Skips.
func (r *Row) Layout() *Layout { return r.layout }

// Epoch is the epoch that the sample is read for, from 0.
func (r *Row) Epoch() int { return r.epoch }

// Position is the sample's place in the epoch's order over all ranks. Padding
// goes on counting past the last sample.
func (r *Row) Position() int64 {
	r.placed = true
	return r.position
}

// Rand returns random numbers that depend on the loader's seed, the epoch and
// the position alone: not on the worker, the rank or what was read before. It is
// borrowed with the row.
func (r *Row) Rand() *rand.Rand {
	if !r.seeded {
		epoch, position := uint64(r.epoch), uint64(r.position)
		r.source.Seed(mix.Hash(r.seed, epoch, position, 0), mix.Hash(r.seed, epoch, position, 1))
		r.seeded, r.placed = true, true
	}
	return r.random
}

// move points the row at another sample, or at the same one again.
func (r *Row) move(number int, position int64) {
	r.number, r.next, r.position, r.seeded = number, 0, position, false
	r.asked.first = 0
	if !r.plain {
		r.forget()
	}
}

// forget is the rest of move.
func (r *Row) forget() {
	r.asked.clear()
	r.forgetLengths()
	if poisonRows {
		r.poison()
	}
}

// unwritten is why the row does not hold a sample although the user's code says
// that it does: a field of it was forgotten.
func (r *Row) unwritten() error {
	if r.plain && r.layout.holding.first&^r.asked.first == 0 {
		return nil
	}
	return r.lacking()
}

// lacking is unwritten for rows that are looked at closely.
func (r *Row) lacking() error {
	if len(r.lengths) > 0 {
		r.excuseEmpty()
	}
	if field := r.layout.holding.firstNotIn(&r.asked); field >= 0 {
		return &UnwrittenError{Field: r.layout.fields[field].Field}
	}
	if len(r.lengths) > 0 {
		if err := r.untold(); err != nil {
			return err
		}
	}
	if poisonRows {
		return r.poisoned()
	}
	return nil
}
