package dtype

import (
	"fmt"
	"unsafe"
)

// Element is a Go type of elements. Each of the element types has one; see Holds.
type Element interface {
	bool | uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

// Holds reports whether elements of type t are seen as T: the Go type of the same name,
// and uint16 for Float16 and BFloat16.
func Holds[T Element](t Type) bool {
	// The size is a constant of each form of this function, which has no other cases then:
	// loaders ask for every value.
	switch unsafe.Sizeof(*new(T)) {
	case 1:
		switch any(*new(T)).(type) {
		case uint8:
			return t == Uint8
		case int8:
			return t == Int8
		}
		return t == Bool
	case 2:
		if _, signed := any(*new(T)).(int16); signed {
			return t == Int16
		}
		return t == Uint16 || t == Float16 || t == BFloat16
	case 4:
		switch any(*new(T)).(type) {
		case float32:
			return t == Float32
		case int32:
			return t == Int32
		}
		return t == Uint32
	}
	switch any(*new(T)).(type) {
	case float64:
		return t == Float64
	case int64:
		return t == Int64
	}
	return t == Uint64
}

// As is b as elements of T, in the same memory: what is written to one is read from the
// other. If b is empty the result is nil. It panics if b is not a whole number of elements,
// or is not aligned for T: the memory of a batch, of a device.HostBuffer and of a whole
// allocation is.
func As[T Element](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(*new(T)))
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b)%size != 0 || uintptr(p)%unsafe.Alignof(*new(T)) != 0 {
		panic(fmt.Sprintf("dtype: %d bytes at %p seen as %T, want a whole number of them, aligned to %d bytes", len(b), p, *new(T), size))
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}

// Bytes is s as bytes, in the same memory: in the byte order of the machine, which is
// little-endian everywhere that Leat runs.
func Bytes[T Element](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}
