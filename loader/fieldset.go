package loader

import "math/bits"

// fieldSet is a set of a layout's fields, a bit each. Most layouts have no more fields than
// the first word has bits: a sample's set is looked at between two copies of its bytes,
// and lies where the sample's other words do.
type fieldSet struct {
	first uint64
	more  []uint64 // of the fields from 64 on, nil if there are none
}

// newFieldSet makes an empty set of a layout of so many fields: no sample allocates.
func newFieldSet(fields int) (s fieldSet) {
	const line = 16 // words: two cache lines of 64 bytes, since processors fetch them in pairs
	if words := (fields - 1) / 64; words > 0 {
		// Each worker writes to its own for every sample.
		s.more = make([]uint64, words, (words+line-1)/line*line)
	}
	return s
}

func (s *fieldSet) add(field int) {
	if field < 64 {
		s.first |= 1 << uint(field)
		return
	}
	s.more[field/64-1] |= 1 << (uint(field) % 64)
}

func (s *fieldSet) clear() {
	s.first = 0
	clear(s.more)
}

// firstNotIn is the first field of s that is not in other, a set of the same
// layout, or -1.
func (s *fieldSet) firstNotIn(other *fieldSet) int {
	if missing := s.first &^ other.first; missing != 0 {
		return bits.TrailingZeros64(missing)
	}
	for i, word := range s.more {
		if missing := word &^ other.more[i]; missing != 0 {
			return (i+1)*64 + bits.TrailingZeros64(missing)
		}
	}
	return -1
}
