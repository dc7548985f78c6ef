package tfrecord

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/leat-go/leat/loader/source"
)

const (
	head  = 12       // a length and its checksum
	frame = head + 4 // and the checksum of the bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is a checksum as it is stored: rotated, so that the checksum of data that holds its own
// checksum is not a constant.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}

// isHead reports whether a record may begin so.
func isHead(b []byte) bool {
	return len(b) >= head && binary.LittleEndian.Uint32(b[8:]) == masked(b[:8])
}

// place is where in which file a record is.
type place struct {
	file           string
	offset, record int64
}

// length is what a record's head says, as far as that is to be believed.
func (p place) length(b []byte, o Options) (int64, error) {
	n := binary.LittleEndian.Uint64(b)
	switch {
	case !isHead(b):
		return 0, p.failure("a length with its checksum", fmt.Sprintf("% x", b[:head]))
	case n > uint64(o.MaxBytes):
		return 0, p.failure(fmt.Sprintf("a record of at most %d bytes (Options.MaxBytes)", o.MaxBytes), fmt.Sprint(n))
	}
	return int64(n), nil
}

// check compares a record with the checksum behind it.
func (p place) check(b []byte) ([]byte, error) {
	data, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := masked(data); got != sum {
		return nil, p.failure(fmt.Sprintf("%d bytes with checksum %08x", len(data), sum), fmt.Sprintf("%08x", got))
	}
	return data, nil
}

func (p place) failure(want, got string) error {
	return &source.FormatError{Format: "tfrecord", File: p.file, Offset: p.offset, Record: p.record, Want: want, Got: got}
}
