package prefetch

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	_ "go4.org/unsafe/assume-no-moving-gc" // tensor v0.9.24 needs the newest version to start on today's Go
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
)

// headers are the tensors over a slot's memory. Several goroutines may ask for one.
type headers struct {
	mu   sync.Mutex
	full []*tensor.Dense // by field, over full batches
	tail []*tensor.Dense // over short ones
}

func newHeaders(fields int) headers {
	return headers{full: make([]*tensor.Dense, fields), tail: make([]*tensor.Dense, fields)}
}

// Tensor returns a field of a host batch as a tensor over the slot's memory,
// without a copy. Float16 and BFloat16 come as uint16, their bits. The tensor is
// valid as long as its Batch, and so is every view of it: kept for longer, it shows
// the numbers of later batches. CloneTensor is for keeping.
//
// With a device there is no such tensor: many of its methods would read device
// memory from the host, which ends the process.
func (b Batch) Tensor(name string) (*tensor.Dense, error) {
	s := b.use("Tensor")
	f, err := b.hostField("Tensor", name)
	if err != nil {
		return nil, err
	}
	i, _ := b.p.out.Lookup(name)
	s.headers.mu.Lock()
	defer s.headers.mu.Unlock()
	kept := &s.headers.full[i]
	if s.rows != b.p.out.BatchSize() {
		kept = &s.headers.tail[i]
	}
	// One that the last user changed, or one of another tail, is made anew.
	if !describes(*kept, f) {
		if *kept, err = newDense(f); err != nil {
			return nil, err
		}
	}
	return *kept, nil
}

// CloneTensor returns a field of a host batch as a tensor over a copy, which is the
// caller's for good. It allocates.
func (b Batch) CloneTensor(name string) (*tensor.Dense, error) {
	f, err := b.hostField("CloneTensor", name)
	if err != nil {
		return nil, err
	}
	f.Bytes = bytes.Clone(f.Bytes)
	return newDense(f)
}

// hostField is a field that a tensor can be made of.
func (b Batch) hostField(method, name string) (Field, error) {
	s := b.use(method)
	if s.host == nil {
		return Field{}, fmt.Errorf("prefetch: %s(%q): the batch is in device memory; take Field(%q).View", method, name, name)
	}
	f := b.Field(name)
	if len(f.Bytes) == 0 {
		return Field{}, fmt.Errorf("prefetch: %s(%q): shape %v has no elements, which package tensor can't express", method, name, f.Shape)
	}
	return f, nil
}

// describes reports whether a header is as newDense made it for f: its user may have
// transposed, reshaped or masked it, or given it other memory.
func describes(d *tensor.Dense, f Field) bool {
	if d == nil || !slices.Equal(d.Shape(), f.Shape) || !d.C() || d.RequiresIterator() || len(d.Mask()) > 0 {
		return false
	}
	if d.MemSize() != uintptr(len(f.Bytes)) || d.Uintptr() != uintptr(unsafe.Pointer(unsafe.SliceData(f.Bytes))) {
		return false
	}
	stride, strides := 1, d.Strides()
	for i := len(f.Shape) - 1; i >= 0; i-- {
		if i >= len(strides) || strides[i] != stride {
			return false
		}
		stride *= f.Shape[i]
	}
	return d.Dtype() == elementType(f.DType)
}

// elementType is what newDense makes tensors of.
func elementType(t dtype.Type) tensor.Dtype {
	switch t {
	case dtype.Bool:
		return tensor.Bool
	case dtype.Uint8:
		return tensor.Uint8
	case dtype.Int8:
		return tensor.Int8
	case dtype.Uint16, dtype.Float16, dtype.BFloat16:
		return tensor.Uint16
	case dtype.Int16:
		return tensor.Int16
	case dtype.Uint32:
		return tensor.Uint32
	case dtype.Int32:
		return tensor.Int32
	case dtype.Uint64:
		return tensor.Uint64
	case dtype.Int64:
		return tensor.Int64
	case dtype.Float32:
		return tensor.Float32
	case dtype.Float64:
		return tensor.Float64
	}
	return tensor.Dtype{}
}

func newDense(f Field) (*tensor.Dense, error) {
	shape := append([]int(nil), f.Shape...)
	var backing any
	switch f.DType {
	case dtype.Bool:
		backing = elements[bool](f.Bytes)
	case dtype.Uint8:
		backing = f.Bytes
	case dtype.Int8:
		backing = elements[int8](f.Bytes)
	case dtype.Uint16, dtype.Float16, dtype.BFloat16:
		backing = elements[uint16](f.Bytes)
	case dtype.Int16:
		backing = elements[int16](f.Bytes)
	case dtype.Uint32:
		backing = elements[uint32](f.Bytes)
	case dtype.Int32:
		backing = elements[int32](f.Bytes)
	case dtype.Uint64:
		backing = elements[uint64](f.Bytes)
	case dtype.Int64:
		backing = elements[int64](f.Bytes)
	case dtype.Float32:
		backing = elements[float32](f.Bytes)
	case dtype.Float64:
		backing = elements[float64](f.Bytes)
	default:
		return nil, fmt.Errorf("prefetch: Tensor(%q): no tensor of %v", f.Name, f.DType)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(backing)), nil
}

// elements is mem as elements of T; every field begins at a multiple of 256 bytes.
func elements[T any](mem []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(t)))
}
