package tfrecord

import (
	"encoding/binary"
	"errors"
)

// A message of protocol buffers is a sequence of fields, each a number with the kind of its value
// in the lowest three bits, and the value: protobuf.dev/programming-guides/encoding.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

var errWire = errors.New("a broken message of protocol buffers")

// message is what is left of one.
type message []byte

// next takes a field off m. The value is in number for a varint, and in data for all others.
func (m *message) next() (field uint64, kind byte, number uint64, data []byte, err error) {
	tag, ok := m.varint()
	if !ok || tag>>3 == 0 {
		return 0, 0, 0, nil, errWire
	}
	n := uint64(0)
	switch kind = byte(tag & 7); kind {
	case varint:
		if number, ok = m.varint(); !ok {
			return 0, 0, 0, nil, errWire
		}
		return tag >> 3, kind, number, nil, nil
	case fixed64:
		n = 8
	case fixed32:
		n = 4
	case bytes:
		if n, ok = m.varint(); !ok {
			return 0, 0, 0, nil, errWire
		}
	default: // groups, which example.proto has none of
		return 0, 0, 0, nil, errWire
	}
	if n > uint64(len(*m)) {
		return 0, 0, 0, nil, errWire
	}
	data, *m = (*m)[:n:n], (*m)[n:]
	return tag >> 3, kind, 0, data, nil
}

// varint takes a number off m: seven bits a byte, the lowest first. Negative ones take ten.
func (m *message) varint() (uint64, bool) {
	x, n := binary.Uvarint(*m)
	if n <= 0 {
		return 0, false
	}
	*m = (*m)[n:]
	return x, true
}
