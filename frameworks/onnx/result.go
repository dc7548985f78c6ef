package onnx

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/loader"
	"github.com/leat-go/leat/pinnedpool"
	"github.com/leat-go/leat/prefetch"
)

// A slot is the memory of one result after the other.
type slot struct {
	buffer *pinnedpool.Buffer
	lap    atomic.Uint64
	call   call // the one that fills it
	// What follows is that of the latest result.
	at            prefetch.Position
	length, valid int
	shapes        [][]int // of the outputs
}

func (s *slot) open(b *pinnedpool.Buffer, results *loader.Layout) {
	s.buffer = b
	for _, f := range results.Fields() {
		s.shapes = append(s.shapes, append([]int{0}, f.Shape...))
	}
}

// take makes the slot that of a batch's result.
func (s *slot) take(b prefetch.Batch) {
	s.at, s.length, s.valid = b.Position(), b.Len(), b.Valid()
	for _, shape := range s.shapes {
		shape[0] = s.length
	}
}

// A Result is the lease of pinned memory with a model's outputs for one batch. It is a small
// value to pass by value. It is valid until Release, and in a range of Map until the loop body
// ends; using it afterwards panics, because another result may be there. Several goroutines
// may read a Result; one of them releases it.
type Result struct {
	model *Model
	slot  *slot
	lap   uint64
}

func (r Result) check() {
	if r.slot == nil || r.slot.lap.Load() != r.lap {
		panic("onnx: a Result was used after its Release, or after the loop body that it was for")
	}
}

// Field returns the output of that name, in pinned host memory. It panics if there is none.
func (r Result) Field(name string) prefetch.Field {
	f, ok := r.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("onnx: the results have no output %q", name))
	}
	return f
}

// Lookup returns the output of that name, if there is one.
func (r Result) Lookup(name string) (prefetch.Field, bool) {
	r.check()
	i, ok := r.model.results.Lookup(name)
	if !ok {
		return prefetch.Field{}, false
	}
	f := r.model.results.Fields()[i]
	memory := r.slot.buffer.Bytes()[f.Offset:][:f.RowBytes*int64(r.slot.length)]
	return prefetch.Field{Name: name, DType: f.DType, Shape: r.slot.shapes[i], Bytes: memory}, true
}

// Len is the number of rows, which is the batch's.
func (r Result) Len() int {
	r.check()
	return r.slot.length
}

// Valid is the number of rows that are not padding.
func (r Result) Valid() int {
	r.check()
	return r.slot.valid
}

// Position says which batch it is the result of.
func (r Result) Position() prefetch.Position {
	r.check()
	return r.slot.at
}

// Release ends the lease. It panics if that has ended already.
func (r Result) Release() {
	if !r.end() {
		panic("onnx: a Result was released twice")
	}
}

// lend is one turn of a loop; break, return and panic end the lease too.
func (r Result) lend(yield func(Result, error) bool) bool {
	defer r.end()
	return yield(r, nil)
}

// end is Release for a loop body that may have released the result itself.
func (r Result) end() bool {
	if r.slot == nil || !r.slot.lap.CompareAndSwap(r.lap, r.lap+1) {
		return false
	}
	r.model.pool.Put(r.slot.buffer)
	return true
}
