package loader

import "math/bits"

// fieldSet is a set of a layout's fields, a bit each. Its words are made once, so
// that it costs a sample no allocation, however many fields there are.
type fieldSet []uint64

// newFieldSet makes an empty set. It has cache lines of its own: each worker writes to
// its set for every sample, and sharing a line more than halves their rate.
func newFieldSet(fields int) fieldSet {
	const line = 16 // words: two of 64 bytes, since processors fetch them in pairs
	words := (fields + 63) / 64
	return make(fieldSet, words, (words+line-1)/line*line)
}

func (s fieldSet) add(field int) { s[uint(field)/64] |= 1 << (uint(field) % 64) }

func (s fieldSet) clear() { clear(s) }

// firstNotIn is the first field of s that is not in other, a set of the same
// layout, or -1.
func (s fieldSet) firstNotIn(other fieldSet) int {
	for i, word := range s {
		if missing := word &^ other[i]; missing != 0 {
			return i*64 + bits.TrailingZeros64(missing)
		}
	}
	return -1
}
