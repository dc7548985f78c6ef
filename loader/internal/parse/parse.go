// Package parse reads elements that are written as text.
package parse

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/leat-go/leat/dtype"
)

// Element writes the number in text as an element of type t to dst, little-endian. If it is
// none it returns what should be there, else "". It allocates nothing for one that is right.
func Element(dst []byte, t dtype.Type, text []byte) (want string) {
	little := binary.LittleEndian
	switch t {
	case dtype.Float64, dtype.Float32:
		bits := 8 * t.Size()
		v, err := strconv.ParseFloat(string(text), bits)
		if err != nil {
			return fmt.Sprintf("a number that %v holds", t)
		}
		if bits == 64 {
			little.PutUint64(dst, math.Float64bits(v))
		} else {
			little.PutUint32(dst, math.Float32bits(float32(v)))
		}
		return ""
	case dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64:
		v, err := strconv.ParseUint(string(text), 10, 8*t.Size())
		if err != nil {
			return fmt.Sprintf("an integer of 0 to %d", uint64(math.MaxUint64)>>(64-8*t.Size()))
		}
		put(dst, t.Size(), v)
		return ""
	case dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64:
		v, err := strconv.ParseInt(string(text), 10, 8*t.Size())
		if err != nil {
			most := int64(math.MaxInt64) >> (64 - 8*t.Size())
			return fmt.Sprintf("an integer of %d to %d", -most-1, most)
		}
		put(dst, t.Size(), uint64(v))
		return ""
	case dtype.Bool:
		switch string(text) {
		case "false", "0", "False", "FALSE":
			dst[0] = 0
		case "true", "1", "True", "TRUE":
			dst[0] = 1
		default:
			return "true or false"
		}
		return ""
	}
	return "a type of elements that can be written as text"
}

// Readable reports whether Element knows a type: all but the floats of 16 bits.
func Readable(t dtype.Type) bool {
	return t.Valid() && t != dtype.Float16 && t != dtype.BFloat16
}

func put(dst []byte, width int, v uint64) {
	little := binary.LittleEndian
	switch width {
	case 1:
		dst[0] = byte(v)
	case 2:
		little.PutUint16(dst, uint16(v))
	case 4:
		little.PutUint32(dst, uint32(v))
	case 8:
		little.PutUint64(dst, v)
	}
}

// Shown is text as errors show it.
func Shown(text []byte) string {
	const most = 40
	if len(text) > most {
		return fmt.Sprintf("%q and %d bytes more", text[:most], len(text)-most)
	}
	return fmt.Sprintf("%q", text)
}
