package loader

import (
	"encoding/binary"

	"github.com/leat-go/leat/dtype"
	"github.com/leat-go/leat/loader/internal/mix"
)

// In builds with the tag invariants a row is poisoned before its sample is
// written, with bytes that no other row has. What still is poison afterwards was
// not written. In the floating-point types the poison is a NaN, so that also the
// few bytes that prove nothing spoil the loss at once.

// A sample's own bytes equal the poison by chance. Anywhere in a field that is not
// believed of so many bytes in a row, at its end, where what a short copy leaves
// would be, not of fewer either. A field of three bytes or less proves nothing.
const (
	provesAnywhere = 8
	provesAtTheEnd = 4
)

// poisonWord is the poison of the eight bytes of a field from 8·word on.
func (r *Row) poisonWord(field, word int) uint64 {
	return mix.Hash(uint64(r.epoch), uint64(r.position), uint64(field), uint64(word)) | nan(r.layout.fields[field].DType)
}

// nan is the bits that make a NaN of every element in a word.
func nan(t dtype.Type) uint64 {
	switch t {
	case dtype.Float16:
		return 0xfe00_fe00_fe00_fe00
	case dtype.BFloat16:
		return 0xffc0_ffc0_ffc0_ffc0
	case dtype.Float32:
		return 0xffc0_0000_ffc0_0000
	case dtype.Float64:
		return 0xfff8_0000_0000_0000
	}
	return 0
}

// poison fills the row.
func (r *Row) poison() {
	for field := range r.layout.Written() {
		b := r.bytes(field)
		var word [8]byte
		for at := 0; at < len(b); at += len(word) {
			binary.LittleEndian.PutUint64(word[:], r.poisonWord(field, at/len(word)))
			copy(b[at:], word[:])
		}
	}
}

// poisoned is an *UnwrittenError for the first part of the row that still is poison.
func (r *Row) poisoned() error {
	for field, f := range r.layout.Written() {
		b := r.used(field)
		var word [8]byte
		intact := 0 // bytes of poison up to here
		for at := range len(b) + 1 {
			if at < len(b) {
				if at%len(word) == 0 {
					binary.LittleEndian.PutUint64(word[:], r.poisonWord(field, at/len(word)))
				}
				if b[at] == word[at%len(word)] {
					intact++
					continue
				}
			}
			if intact >= provesAnywhere || at == len(b) && intact >= provesAtTheEnd {
				return &UnwrittenError{Field: f.Field, Offset: int64(at - intact), Bytes: int64(intact)}
			}
			intact = 0
		}
	}
	return nil
}
