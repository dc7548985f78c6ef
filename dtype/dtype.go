// Package dtype names the element types that batches are made of.
//
// It exists beside gorgonia.org/tensor's own Dtype because that one has no
// float16 and no bfloat16, and because package kernels must speak of element
// types without knowing tensors. Both loader and kernels import it; it imports
// nothing of Leat.
package dtype

import "fmt"

// Type is an element type. The zero value is Invalid.
type Type uint8

// The element types. Float16 is IEEE 754 binary16, BFloat16 the upper half of a
// binary32. A Bool is one byte, 0 or 1. All are little-endian in memory.
const (
	Invalid Type = iota
	Bool
	Uint8
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Uint64
	Int64
	Float16
	BFloat16
	Float32
	Float64
)

var table = [...]struct {
	name  string
	bytes int
}{
	Invalid:  {"invalid", 0},
	Bool:     {"bool", 1},
	Uint8:    {"uint8", 1},
	Int8:     {"int8", 1},
	Uint16:   {"uint16", 2},
	Int16:    {"int16", 2},
	Uint32:   {"uint32", 4},
	Int32:    {"int32", 4},
	Uint64:   {"uint64", 8},
	Int64:    {"int64", 8},
	Float16:  {"float16", 2},
	BFloat16: {"bfloat16", 2},
	Float32:  {"float32", 4},
	Float64:  {"float64", 8},
}

// Valid reports whether t is one of the named types other than Invalid.
func (t Type) Valid() bool { return t > Invalid && int(t) < len(table) }

// Size is the size of one element in bytes, 0 for an invalid type.
func (t Type) Size() int {
	if !t.Valid() {
		return 0
	}
	return table[t].bytes
}

// String is the type's name as NumPy and PyTorch write it.
func (t Type) String() string {
	if int(t) >= len(table) {
		return fmt.Sprintf("dtype.Type(%d)", uint8(t))
	}
	return table[t].name
}
