package group

import (
	"fmt"
	"sync/atomic"

	"github.com/leat-go/leat/prefetch"
)

// A Result is the lease of a result in host memory, valid until the loop body ends. It is a
// small value to pass by value.
type Result struct {
	of  *held
	lap uint64
}

// held is a result that the loop is to get, where it lies in the device's own memory, or a
// copy of it.
type held struct {
	device, step int
	result       prefetch.Result
	lap          atomic.Uint64 // odd while the loop has it

	copied      bool // and then, instead of result:
	fields      []prefetch.Field
	rows, valid int
	at          prefetch.Position
}

// keep copies the result, whose memory its device wants back, into memory of its own.
func (h *held) keep(of *held, names []string) {
	r := of.result
	h.device, h.step, h.copied = of.device, of.step, true
	h.rows, h.valid, h.at = r.Len(), r.Valid(), r.Position()
	if h.fields == nil {
		h.fields = make([]prefetch.Field, len(names))
	}
	for i, name := range names {
		from, to := r.Field(name), &h.fields[i]
		to.Name, to.DType = from.Name, from.DType
		to.Shape = append(to.Shape[:0], from.Shape...)
		to.Bytes = append(to.Bytes[:0], from.Bytes...)
	}
}

func (r Result) use(method string) *held {
	if r.of == nil {
		panic("group: Result." + method + " of the zero Result, which a range yields together with an error: check err first")
	}
	if r.of.lap.Load() != r.lap {
		panic("group: Result." + method + " after its loop body has ended")
	}
	return r.of
}

// Device is the number of the device that has computed it, in the order of NewPool's streams.
func (r Result) Device() int { return r.use("Device").device }

// Len is the number of rows.
func (r Result) Len() int {
	h := r.use("Len")
	if h.copied {
		return h.rows
	}
	return h.result.Len()
}

// Valid is the number of rows that are not padding.
func (r Result) Valid() int {
	h := r.use("Valid")
	if h.copied {
		return h.valid
	}
	return h.result.Valid()
}

// Position says which batch it is the result of.
func (r Result) Position() prefetch.Position {
	h := r.use("Position")
	if h.copied {
		return h.at
	}
	return h.result.Position()
}

// Field returns a field of the result, in host memory. It panics if there is none of that
// name.
func (r Result) Field(name string) prefetch.Field {
	f, ok := r.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("group: no field %q in a result", name))
	}
	return f
}

// Lookup returns the field of that name, if there is one.
func (r Result) Lookup(name string) (prefetch.Field, bool) {
	h := r.use("Field")
	if !h.copied {
		return h.result.Lookup(name)
	}
	for _, f := range h.fields {
		if f.Name == name {
			return f, true
		}
	}
	return prefetch.Field{}, false
}
