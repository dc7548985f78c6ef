package mds

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader"
)

// Column is one of a sample's.
type Column struct {
	// Name is that of the index, and of the field that the column is written to.
	Name string
	// Encoding is how values are stored, as the index has it: int, float32, str, jpeg,
	// ndarray:int32:2,3 and so on.
	Encoding string

	size  int        // in bytes, -1 where each sample has its own
	kind  kind       // of its values
	dtype dtype.Type // of numbers, Invalid where each value has its own
	shape []int      // nil where each value has its own
}

type kind uint8

const (
	asBytes  kind = iota // as they are
	asScalar             // one number
	asArray              // an array of NumPy
	asInt                // a whole number as text
	asFloat              // another number as text
	asPickle             // a program
)

// Field is the field that the column's values fit, if they all have one type and shape.
func (c *Column) Field() (f loader.Field, ok bool) {
	if c.kind != asScalar && (c.kind != asArray || c.dtype == dtype.Invalid || c.shape == nil) {
		return loader.Field{}, false
	}
	return loader.Field{Name: c.Name, DType: c.dtype, Shape: c.shape}, true
}

var scalars = map[string]dtype.Type{
	"int": dtype.Int64, "uint8": dtype.Uint8, "uint16": dtype.Uint16, "uint32": dtype.Uint32, "uint64": dtype.Uint64,
	"int8": dtype.Int8, "int16": dtype.Int16, "int32": dtype.Int32, "int64": dtype.Int64,
	"float16": dtype.Float16, "float32": dtype.Float32, "float64": dtype.Float64,
}

// numbered are the types of arrays that say it themselves.
var numbered = map[byte]string{
	8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32", 34: "float32",
	64: "uint64", 65: "int64", 66: "float64",
}

// newColumn reads an encoding. size is the one that the index states, nil for none; what is
// wrong is returned as text.
func newColumn(name, encoding string, size *int64) (c Column, want, got string) {
	c = Column{Name: name, Encoding: encoding, size: -1}
	first, rest, hasType := strings.Cut(encoding, ":")
	switch {
	case first == "ndarray":
		c.kind = asArray
		if want, got = c.array(rest, hasType); want != "" {
			return c, want, got
		}
	case scalars[encoding] != dtype.Invalid:
		c.kind, c.dtype, c.size, c.shape = asScalar, scalars[encoding], scalars[encoding].Size(), []int{}
	case encoding == "str_int":
		c.kind = asInt
	case encoding == "str_float":
		c.kind = asFloat
	case encoding == "pkl":
		c.kind = asPickle
	}
	if size == nil && c.size >= 0 || size != nil && *size != int64(c.size) {
		if c.kind != asBytes || size == nil || *size < 0 || *size > math.MaxInt32 {
			return c, "the size that " + encoding + " has", show(size)
		}
		c.size = int(*size)
	}
	return c, "", ""
}

func show(size *int64) string {
	if size == nil {
		return "none"
	}
	return strconv.FormatInt(*size, 10)
}

// array reads what stands behind ndarray: a type, and behind a colon a shape.
func (c *Column) array(rest string, hasType bool) (want, got string) {
	if !hasType {
		return "", ""
	}
	name, shape, hasShape := strings.Cut(rest, ":")
	if c.dtype = scalars[name]; c.dtype == dtype.Invalid || name == "int" {
		return "a type of numbers", c.Encoding
	}
	if !hasShape {
		return "", ""
	}
	c.shape, c.size = []int{}, c.dtype.Size()
	for _, text := range strings.Split(shape, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > math.MaxInt32/c.size {
			return "a shape of less than 2 GiB", c.Encoding
		}
		c.shape, c.size = append(c.shape, n), c.size*n
	}
	return "", ""
}

// values takes an array apart, into shape's memory: its type, its shape and the bytes of its
// elements.
func (c *Column) values(data []byte, shape []int) (t dtype.Type, dims []int, elements []byte, ok bool) {
	if c.kind == asScalar {
		return c.dtype, c.shape, data, true
	}
	if t = c.dtype; t == dtype.Invalid {
		if len(data) == 0 {
			return 0, nil, nil, false
		}
		t, data = scalars[numbered[data[0]]], data[1:]
	}
	if dims = c.shape; dims == nil {
		if dims, data, ok = readShape(data, shape); !ok {
			return 0, nil, nil, false
		}
	}
	count := uint64(t.Size())
	for _, n := range dims {
		high, low := bits.Mul64(count, uint64(n))
		if count = low; high != 0 {
			return 0, nil, nil, false
		}
	}
	return t, dims, data, t != dtype.Invalid && count == uint64(len(data))
}

// readShape reads the number of dimensions, whose lowest bits are the size of each, and these.
func readShape(data []byte, shape []int) (dims []int, rest []byte, ok bool) {
	if len(data) == 0 {
		return nil, nil, false
	}
	n, width := int(data[0]>>2), 1<<(data[0]&3)
	if data = data[1:]; len(data) < n*width {
		return nil, nil, false
	}
	for range n {
		var word [8]byte
		copy(word[:], data[:width])
		dim := binary.LittleEndian.Uint64(word[:])
		if dim > math.MaxInt32 {
			return nil, nil, false
		}
		shape, data = append(shape, int(dim)), data[width:]
	}
	return shape, data, true
}

// sameShape reports whether an array of these dimensions is the field's, or one of its lengths.
func sameShape(f *loader.FieldLayout, dims []int) bool {
	if len(dims) != len(f.Shape) {
		return false
	}
	for i, n := range dims {
		if n != f.Shape[i] && (i > 0 || f.Ragged == nil) {
			return false
		}
	}
	return true
}

func describe(t dtype.Type, dims []int) string { return fmt.Sprintf("%v%v", t, dims) }
