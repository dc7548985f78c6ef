package loader

import "math/bits"

// fieldSet is a set of a layout's fields, a bit each. Its words are made once, so
// that it costs a sample no allocation, however many fields there are.
type fieldSet []uint64

func newFieldSet(fields int) fieldSet { return make(fieldSet, (fields+63)/64) }

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
