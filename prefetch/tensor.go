package prefetch

import (
	"fmt"
	"unsafe"

	_ "go4.org/unsafe/assume-no-moving-gc" // tensor v0.9.24 needs the newest version to start on today's Go
	"gorgonia.org/tensor"

	"github.com/leat-go/leat/dtype"
)

// tensors are a field's two headers over the slot's memory.
type tensors struct{ full, tail *tensor.Dense }

// Tensor returns a field of a host batch as a tensor over the slot's memory,
// without a copy. Float16 and BFloat16 come as uint16, their bits. The tensor is
// valid as long as its Batch, and so is every view of it.
//
// With a device there is no such tensor: many of its methods would read device
// memory from the host, which ends the process.
func (b Batch) Tensor(name string) (*tensor.Dense, error) {
	s := b.use("Tensor")
	if s.host == nil {
		return nil, fmt.Errorf("prefetch: Tensor(%q): the batch is in device memory; take Field(%q).View", name, name)
	}
	f := b.Field(name)
	if len(f.Bytes) == 0 {
		return nil, fmt.Errorf("prefetch: Tensor(%q): shape %v has no elements, which package tensor can't express", name, f.Shape)
	}
	i, _ := b.p.out.Lookup(name)
	kept := &s.tensors[i].full
	if s.rows != b.p.out.BatchSize() {
		kept = &s.tensors[i].tail
	}
	// A header that the last user reshaped, or one of another tail, is made anew.
	if *kept == nil || !(*kept).Shape().Eq(tensor.Shape(f.Shape)) || (*kept).RequiresIterator() {
		dense, err := newDense(f)
		if err != nil {
			return nil, err
		}
		*kept = dense
	}
	return *kept, nil
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
