// Package mix hashes words to words. The values are part of the library's
// promise that a seed gives the same data on every machine and in every
// release: they must never change.
package mix

// golden is 2^64 divided by the golden ratio, made odd: SplitMix64's increment.
const golden = 0x9e3779b97f4a7c15

// Word is SplitMix64's output function (Steele, Lea and Flood, 2014): a
// bijection of the 64-bit words in which each input bit reaches each output bit.
func Word(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// Hash folds words, in order, into one. Hash of n words and of n+1 words are
// unrelated, so that callers may tell uses apart by arity.
func Hash(words ...uint64) uint64 {
	h := Begin(len(words))
	for _, w := range words {
		h = Fold(h, w)
	}
	return h
}

// Begin is a Hash of so many words before the first, and Fold takes one more. Where the
// first words stay the same their part need be done only once.
func Begin(words int) uint64 { return Word(golden * uint64(words)) }

// Fold takes a word into a hash that Begin has begun.
func Fold(h, word uint64) uint64 { return Word((h ^ word) + golden) }
